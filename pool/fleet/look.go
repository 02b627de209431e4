package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
)

// Machine is a process that lives.
type Machine struct {
	ID, Name string
	Projects map[string]int // what it works, and how many issues of each at the same time at most
}

// Issue is an issue with an open row.
type Issue struct {
	Project, Key string
	State        string // River's
	Machine      string // the process that works it, or worked it last
	Generation   int
	Next         time.Time // when it is looked at next, unless it is running
}

// Look is what the fleet is doing.
type Look struct {
	Machines []Machine
	Paused   []string // projects
	Issues   []Issue
}

// Look lists machines and open rows. Machines that died less than a minute ago may still be there.
func (d *Database) Look(ctx context.Context) (l Look, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, err := d.pool.Query(ctx, "SELECT id, name, projects FROM ralph_machine WHERE "+alive+" ORDER BY name, id", time.Minute.Seconds())
	if err != nil {
		return l, d.hide(err)
	}
	if l.Machines, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Machine]); err != nil {
		return l, d.hide(err)
	}
	if l.Paused, err = d.paused(ctx); err != nil {
		return l, err
	}
	rows, err = d.pool.Query(ctx, `SELECT args ->> 'project', args ->> 'key', state::text, coalesce(attempted_by[cardinality(attempted_by)], ''),
		(args ->> 'generation')::integer, scheduled_at FROM river_job
		WHERE `+isOpen+` ORDER BY 1, state = 'running' DESC, priority, id`)
	if err != nil {
		return l, d.hide(err)
	}
	l.Issues, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Issue])
	return l, d.hide(err)
}

// Runs are the records of a project's runs on all machines, to look at.
func (d *Database) Runs(project string) journal.Store {
	return &postgres.Store{DB: d.pool, Project: project}
}

// Running lists the open records of a project's runs on machines that live.
func (d *Database) Running(ctx context.Context, project string) ([]journal.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, err := d.pool.Query(ctx, "SELECT id FROM ralph_machine WHERE "+alive, time.Minute.Seconds())
	if err != nil {
		return nil, d.hide(err)
	}
	machines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, d.hide(err)
	}
	list, err := (&postgres.Store{DB: d.pool, Project: project}).Elsewhere(ctx, "", machines)
	return list, d.hide(err)
}

// Queue is a client of the queue that works nothing.
func (d *Database) Queue() (*river.Client[pgx.Tx], error) {
	return river.NewClient(riverpgxv5.New(d.pool), &river.Config{})
}

// Stop asks for the end of an issue's run, wherever it is, and takes its row away. It reports whether there was one, and does
// not wait.
func (d *Database) Stop(ctx context.Context, project, key string) (bool, error) {
	client, err := d.Queue()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, err := d.pool.Query(ctx, "SELECT id FROM river_job WHERE queue = $1 AND args ->> 'key' = $2 AND "+isOpen, queueOf(project), key)
	if err != nil {
		return false, d.hide(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, id := range ids {
		if _, err := client.JobCancel(ctx, id); err != nil {
			return false, d.hide(err)
		}
	}
	return len(ids) > 0, d.hide(err)
}

// Wake has the project's planner, wherever it is, look at the backlog now, in a moment. It is no error when there is none.
func (f *Fleet) Wake(project string) {
	if s := f.project(project); s != nil {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}
