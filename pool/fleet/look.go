package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
)

// Machine is a process of the fleet that is alive or has died recently.
type Machine struct {
	ID, Name string
	PID      int
	Roles    []string
	Since    time.Time      // when the process joined the fleet
	Silent   time.Duration  // time since its last heartbeat
	Projects map[string]int // maximum number of issues at a time, by project; 0 for projects that it only plans or shows
}

// Issue is an issue with an open row.
type Issue struct {
	Project, Key string
	State        string // River's state
	Machine      string // the process that works it or did so last
	Generation   int
	Next         time.Time // when it is next looked at, unless it is running
}

// Snapshot describes the present activity of the fleet.
type Snapshot struct {
	Machines []Machine
	Paused   []string // names of projects
	Issues   []Issue
}

// Snapshot lists machines and open rows. A dead machine is still listed for half a minute, also after a start of the server.
func (d *Database) Snapshot(ctx context.Context) (l Snapshot, err error) {
	if l.Machines, err = query(ctx, d, pgx.RowToStructByPos[Machine], `SELECT id, name, pid, roles, since, now() - expires_at + make_interval(secs => $1),
		(SELECT coalesce(jsonb_object_agg(project, 0), '{}') FROM jsonb_object_keys(repositories) AS project) || projects
		FROM ralph_machine WHERE `+isAlive+" ORDER BY name, since, id", lifeTime.Seconds()); err != nil {
		return l, err
	}
	if l.Paused, err = d.paused(ctx); err != nil {
		return l, err
	}
	l.Issues, err = query(ctx, d, pgx.RowToStructByPos[Issue], `SELECT args ->> 'project', args ->> 'key', state::text,
		coalesce(attempted_by[cardinality(attempted_by)], ''), (args ->> 'generation')::integer, scheduled_at
		FROM river_job WHERE `+isOpen+` ORDER BY 1, state = 'running' DESC, priority, id`)
	return l, err
}

// paused returns the names of paused projects.
func (d *Database) paused(ctx context.Context) ([]string, error) {
	return query(ctx, d, pgx.RowTo[string], "SELECT project FROM ralph_pause ORDER BY 1")
}

// Runs returns a read-only store with the records of a project's runs on all machines.
func (d *Database) Runs(project string) journal.Store {
	return &postgres.Store{DB: d.pool, Project: project}
}

// RunsElsewhere returns the open records of a project's runs on other live machines.
func (f *Fleet) RunsElsewhere(ctx context.Context, project string) ([]journal.Record, error) {
	return f.db.running(ctx, project, "", f.id, time.Minute)
}

// Running returns the open records of a project's runs on live machines.
func (d *Database) Running(ctx context.Context, project string) ([]journal.Record, error) {
	return d.running(ctx, project, "", "", time.Minute)
}

// running returns the open records of a pool on machines that are alive by the TTL, except one machine.
func (d *Database) running(ctx context.Context, project, pool, besides string, ttl time.Duration) ([]journal.Record, error) {
	machines, err := query(ctx, d, pgx.RowTo[string], "SELECT id FROM ralph_machine WHERE id <> $2 AND "+isAlive, ttl.Seconds(), besides)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	list, err := (&postgres.Store{DB: d.pool, Project: project}).Elsewhere(ctx, pool, machines)
	return list, d.hide(err)
}

// Queue returns a client of the queue that works no rows.
func (d *Database) Queue() (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(d.pool), &river.Config{})
}

// Stop requests the end of an issue's run on any machine and cancels its row. It does not wait, and reports whether there
// was a row. If run is not empty, it stops only that run.
func (d *Database) Stop(ctx context.Context, project, key, run string) (bool, error) {
	client, err := d.Queue()
	if err != nil {
		return false, err
	}
	ids, err := query(ctx, d, pgx.RowTo[int64], "SELECT id FROM river_job WHERE queue = $1 AND args ->> 'key' = $2 AND "+isOpen, queueOf(project), key)
	if err != nil {
		return false, err
	}
	if run != "" && len(ids) > 0 { // read after the rows: a run in progress had its row then
		on, err := d.isLatestRun(ctx, project, key, run)
		if !on || err != nil {
			return false, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	for _, id := range ids {
		if _, err := client.JobCancel(ctx, id); err != nil {
			return false, d.hide(err)
		}
	}
	return len(ids) > 0, nil
}

// isLatestRun reports whether the run is the issue's latest open run.
func (d *Database) isLatestRun(ctx context.Context, project, key, run string) (bool, error) {
	list, err := d.Running(ctx, project)
	list = slices.DeleteFunc(list, func(r journal.Record) bool { return r.Key != key })
	return len(list) > 0 && list[len(list)-1].ID == run, err
}

// Wake makes the project's planner, on whichever machine, read the backlog within about a second. It does not wait. While
// the database is away nothing is planned, and the next poll has the same effect.
func (f *Fleet) Wake(project string) {
	f.background.Go(func() {
		if err := f.db.wake(context.Background(), project); err != nil {
			f.c.Log.Debug("planner not woken", "project", project, "error", err)
		}
	})
}

func (d *Database) wake(ctx context.Context, project string) error {
	_, err := d.exec(ctx, "INSERT INTO ralph_wake (project) VALUES ($1) ON CONFLICT DO NOTHING", project)
	return err
}
