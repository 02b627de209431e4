package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/fleet/internal/slots"
)

// Config configures a fleet. Database is required; the zero value of any other field means its default.
type Config struct {
	Database *Database
	Plan     bool          // plan projects
	Work     bool          // work their issues
	Roles    []string      // roles of this process, for people
	Name     string        // name of this machine, for people; default: its host name
	TTL      time.Duration // TTL of leases, and of machines without a heartbeat; default 30 s
	Tick     time.Duration // interval of reading the rows while planning; default 1 s
	Log      *slog.Logger  // default: no log
}

// Project is an open project. On all machines it has the same Name and means the same backlog of the same repository.
type Project struct {
	Name       string
	Repository string // address, the same on all machines; empty: unknown
	Pool       *pool.Pool
	Claims     pool.Claims
	Parallel   int           // maximum number of issues at a time on this machine; the pool's slots also count
	Poll       time.Duration // interval of reading the backlog; default 1 min
	// Limit is the maximum number of issues at a time on all machines; 0: no limit.
	Limit int
	// Account names the resource that the project's agents share, such as an account with a provider. AccountLimit is the
	// maximum number of runs of all projects with it at a time; 0: no limit.
	Account      string
	AccountLimit int
	Journal      *Journal // store of the pool; nil: the store is not shared
}

// Fleet is this process's membership of the machines that share a database. It is safe for concurrent use.
type Fleet struct {
	c          Config
	id         string
	db         *Database
	client     *river.Client[pgx.Tx]
	clock      clock
	stop       context.CancelCauseFunc
	member     context.Context // ended by stop
	background sync.WaitGroup
	outage     outage
	slots      slots.Slots

	started time.Time // by the database's clock

	reading  sync.Mutex // held by readPauses
	mu       sync.Mutex
	projects map[string]*served // guarded by mu
	rows     map[int64]bool     // guarded by mu; IDs of rows being worked
	paused   []string           // guarded by mu; names of projects; see Pause
}

// served is a project that Serve handles.
type served struct {
	Project
	rowFreed chan struct{} // a run has ended here: read the rows now
	do       func(context.Context, row) (pool.Result, error)

	server string // server of the last reconciliation; owned by recoverAgain's goroutine

	mu              sync.Mutex
	restUntil       time.Time         // guarded by mu; start nothing here before
	failures        int               // guarded by mu; this machine's failures in a row
	lastFailure     error             // guarded by mu; the last failure; nil: none
	planningProblem error             // guarded by mu; see notePlanning
	loggedReasons   map[string]string // guarded by mu; the last logged reason why an issue was not worked, by key
}

func newServed(p Project) *served {
	s := &served{Project: p, rowFreed: make(chan struct{}, 1), loggedReasons: map[string]string{}}
	s.do = s.work
	return s
}

// ErrServed means that this process already serves the project.
var ErrServed = errors.New("this process serves the project already")

// ErrOtherRepository means that another machine uses the project's name for another repository.
var ErrOtherRepository = errors.New("two repositories of the fleet have the same project name")

// Start joins the fleet. The database must be migrated; see Database.Check. Stop leaves the fleet.
func Start(ctx context.Context, c Config) (*Fleet, error) {
	host, _ := os.Hostname()
	c.Name = cmp.Or(c.Name, host, "unknown")
	c.TTL, c.Tick = cmp.Or(c.TTL, lifeTime), cmp.Or(c.Tick, time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	id := fmt.Sprintf("%.40s/%d/%s", c.Name, os.Getpid(), rand.Text()[:8])
	f := &Fleet{c: c, db: c.Database, id: id, projects: map[string]*served{}, rows: map[int64]bool{}, outage: outage{log: c.Log}}
	if err := f.db.Check(ctx); err != nil {
		return nil, err
	}
	ahead, err := f.clock.set(ctx, f.db)
	if err != nil {
		return nil, err
	}
	if ahead.Abs() > maxAhead {
		c.Log.Warn("this machine's clock is wrong", "ahead of the database's by", ahead.Round(time.Second))
	}
	f.started = f.clock.Now()
	set := &river.Config{ID: f.id, Logger: slog.New(f.Quiet(c.Log.Handler())), Hooks: []rivertype.Hook{river.HookInsertBeginFunc(f.clock.due)}}
	set.Test.Time = &f.clock // River's way to set a clock: its leader wakes waiting rows by it
	if c.Work {
		set.Workers = river.NewWorkers()
		if err := river.AddWorkerSafely(set.Workers, &worker{f: f}); err != nil {
			return nil, err
		}
		set.Queues = map[string]river.QueueConfig{idleQueue: {MaxWorkers: 1, FetchPollInterval: time.Minute}}
		set.FetchCooldown = 20 * time.Millisecond // an issue may take as little time
		set.JobTimeout, set.MaxAttempts = -1, 1
		set.FetchOnlyKnownKinds, set.SoftStopTimeout = true, 0
	}
	if f.client, err = river.NewClient(riverpgxv5.New(f.db.pool), set); err != nil {
		return nil, f.db.hide(err)
	}
	member, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	f.stop, f.member = stop, member
	err = errors.Join(f.announce(ctx), f.readPauses(ctx))
	if err == nil && c.Work {
		err = f.db.hide(f.client.Start(member))
	}
	if err != nil {
		stop(nil)
		return nil, err
	}
	f.background.Go(func() { f.sendHeartbeats(member) })
	return f, nil
}

// maxAhead is the difference to the database's clock above which a machine warns. Leases and claims use the database's
// clock, reports and retry times the machine's.
const maxAhead, lifeTime = 30 * time.Second, 30 * time.Second // lifeTime is the default of Config.TTL

// SetParallel sets how many issues of all projects run here at once; 0: no limit of its own. Present runs continue.
func (f *Fleet) SetParallel(n int) { f.slots.Set(n) }

// Now returns the database's time, by which the claims of all machines expire.
func (f *Fleet) Now() time.Time { return f.clock.Now() }

// idleQueue exists because River requires a queue at its start. It has no rows.
const idleQueue = "ralph-idle"

// stopTime limits the wait for the database when a process leaves. Unwritten data expires later.
const stopTime = 15 * time.Second

// Stop leaves the fleet. All calls of Serve must have returned.
func (f *Fleet) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if f.c.Work {
		if err := f.client.Stop(ctx); err != nil {
			f.c.Log.Warn("not all ended rows were written to the database; they expire", "error", f.db.hide(err))
		}
	}
	f.stop(nil)
	f.background.Wait()
	if _, err := f.db.exec(ctx, "DELETE FROM ralph_machine WHERE id = $1", f.id); err != nil {
		f.c.Log.Debug("machine not signed off", "error", err)
	}
}

// sendHeartbeats sends heartbeats until ctx ends.
func (f *Fleet) sendHeartbeats(ctx context.Context) {
	ticker := time.NewTicker(f.c.TTL / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, err := f.clock.set(ctx, f.db)
		if err == nil {
			err = errors.Join(f.announce(ctx), f.readPauses(ctx))
		}
		if ctx.Err() != nil {
			return
		}
		f.outage.note(f.db.hide(err))
	}
}

// announce sends a heartbeat: it records that this process is alive, and its projects and rows.
func (f *Fleet) announce(ctx context.Context) error {
	f.mu.Lock()
	projects, repositories := map[string]int{}, map[string]string{}
	for name, s := range f.projects {
		repositories[name] = s.Repository
		if f.c.Work {
			projects[name] = s.Parallel
		}
	}
	rows := slices.AppendSeq([]int64{}, maps.Keys(f.rows))
	f.mu.Unlock()
	_, err := f.db.exec(ctx, `INSERT INTO ralph_machine (id, name, projects, rows, expires_at, repositories, roles, pid, since)
		VALUES ($1, $2, $3, $5, now() + make_interval(secs => $4), $6, $7, $8, $9) ON CONFLICT (id) DO UPDATE
		SET projects = excluded.projects, rows = excluded.rows, expires_at = excluded.expires_at, repositories = excluded.repositories`,
		f.id, f.c.Name, projects, f.c.TTL.Seconds(), rows, repositories, append([]string{}, f.c.Roles...), os.Getpid(), f.started)
	return err
}

// markWorked records that a row is being worked, until done is called.
func (f *Fleet) markWorked(id int64) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[id] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.rows, id)
	}
}

// Serve plans and works a project until ctx ends and its runs have ended. To stop runs, use the pool's Kill and Stop.
func (f *Fleet) Serve(ctx context.Context, p Project) error {
	p.Poll, p.Parallel = cmp.Or(p.Poll, time.Minute), max(1, p.Parallel)
	s := newServed(p)
	if err := f.add(s); err != nil {
		return err
	}
	defer func() {
		f.remove(s)
		_ = f.announce(context.WithoutCancel(ctx)) // otherwise the next heartbeat does it
	}()
	if err := cmp.Or(f.announce(ctx), f.checkRepository(ctx, p)); err != nil {
		return err
	}
	if err := f.reconcile(ctx, s); err != nil {
		return err
	}
	var background sync.WaitGroup
	if f.c.Work {
		if err := s.recover(ctx); err != nil {
			return err
		}
		if err := f.startQueue(queueOf(p.Name), p.Parallel); err != nil {
			return err
		}
		defer f.stopQueue(queueOf(p.Name))
		background.Go(func() { f.recoverAgain(ctx, s) })
	}
	if f.c.Plan {
		background.Go(func() { f.plan(ctx, s) })
	}
	<-ctx.Done()
	background.Wait()
	return nil
}

// checkRepository fails if the name means another repository on another machine: they would share rows and records.
func (f *Fleet) checkRepository(ctx context.Context, p Project) error {
	if p.Repository == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var machine, other string
	err := f.db.pool.QueryRow(ctx, "SELECT name, repositories ->> $2 FROM ralph_machine WHERE "+isAlive+` AND id <> $3
		AND repositories ->> $2 NOT IN ($4, '') LIMIT 1`, f.c.TTL.Seconds(), p.Name, f.id, p.Repository).Scan(&machine, &other)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return f.db.hide(err)
	}
	return fmt.Errorf("%w: here %s, on %s %s", ErrOtherRepository, p.Repository, machine, other)
}

func (f *Fleet) add(s *served) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.projects[s.Name] != nil {
		return ErrServed
	}
	f.projects[s.Name] = s
	return nil
}

func (f *Fleet) remove(s *served) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.projects, s.Name)
}

// project returns a project that this process serves, or nil.
func (f *Fleet) project(name string) *served {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.projects[name]
}

// startQueue starts working rows of a queue, up to most at a time.
func (f *Fleet) startQueue(queue string, most int) error {
	err := f.client.Queues().Add(queue, river.QueueConfig{MaxWorkers: most})
	if err != nil {
		f.stopQueue(queue) // River keeps a queue that failed to start, and would refuse it the next time
	}
	return f.db.hide(err)
}

// stopQueue stops taking rows of a queue and waits for its running rows, in short calls, as each blocks the client.
func (f *Fleet) stopQueue(queue string) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		err := f.client.Queues().Remove(ctx, queue)
		cancel()
		if err == nil || !errors.Is(err, context.DeadlineExceeded) {
			return
		}
		<-time.After(200 * time.Millisecond)
	}
}

// recover continues or ends runs on this machine whose process has died.
func (s *served) recover(ctx context.Context) error {
	r, err := s.Pool.Recover(ctx)
	return cmp.Or(err, r.Unavailable)
}

// recoverAgain repeats failed publications, recoveries and writes to the database.
func (f *Fleet) recoverAgain(ctx context.Context, s *served) {
	for retry.Sleep(ctx, s.Poll) == nil {
		if err := f.reconcile(ctx, s); err != nil && ctx.Err() == nil && !f.away(ctx) {
			f.c.Log.Warn("records are not in the database yet", "project", s.Name, "error", err)
		}
		if err := s.recover(ctx); err == nil {
			s.notePoll(time.Now())
		} else if ctx.Err() == nil {
			f.c.Log.Warn("runs that died are not recovered yet", "project", s.Name, "error", err)
		}
	}
}
