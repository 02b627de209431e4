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
	"github.com/ralph-pool/ralph/pool/fleet/slots"
)

// Config is a fleet's set-up. Database is required; the zero value of every other field means the default its comment names.
type Config struct {
	Database *Database
	Plan     bool          // plan projects
	Work     bool          // work their issues
	Roles    []string      // for people: what this process does
	Name     string        // of this machine, for people; default: its host name
	TTL      time.Duration // of leases, and of machines without a heartbeat; default 30 s
	Tick     time.Duration // between reads of the rows while planning; default 1 s
	Log      *slog.Logger  // default: none
}

// Project is an open project. On all machines of a fleet it has the same Name, and is the same backlog of the same repository.
type Project struct {
	Name       string
	Repository string // its address, the same on all machines; empty: not known
	Pool       *pool.Pool
	Claims     pool.Claims
	Parallel   int           // issues that this machine works at the same time, at most; the pool's slots count, too
	Poll       time.Duration // between reads of the backlog; default 1 min
	// Limit is how many issues are worked on all machines; 0: no limit.
	Limit int
	// Account names what its agents use up together, such as a provider's account, and AccountLimit is how many runs of all
	// projects may use it at the same time; 0: no limit.
	Account      string
	AccountLimit int
	Journal      *Journal // the pool's store; nil: it is this machine's alone
}

// Fleet is one process of the machines that share a database. Its methods are safe for concurrent use.
type Fleet struct {
	c      Config
	id     string
	db     *Database
	client *river.Client[pgx.Tx]
	clock  clock
	stop   context.CancelCauseFunc
	over   <-chan struct{} // closed by stop
	beside sync.WaitGroup
	outage outage
	slots  slots.Slots

	started time.Time // by the database

	reading  sync.Mutex // held by readPauses
	mu       sync.Mutex
	projects map[string]*served // guarded by mu
	rows     map[int64]bool     // guarded by mu; that are being worked
	paused   []string           // guarded by mu; projects; see Pause
}

// served is a project that is being served.
type served struct {
	Project
	free chan struct{} // a run has ended here: read the rows now
	do   func(context.Context, row) (pool.Result, error)

	server string // with which the journal was reconciled last; of the goroutine of recoverAgain

	mu       sync.Mutex
	rest     time.Time         // guarded by mu; nothing is started here before
	failures int               // guarded by mu; of this machine in a row
	why      error             // guarded by mu; the last of them; nil: there is none
	idle     error             // guarded by mu; see planned
	said     map[string]string // guarded by mu; why issues were not worked when that was logged last; by key
}

func newServed(p Project) *served {
	s := &served{Project: p, free: make(chan struct{}, 1), said: map[string]string{}}
	s.do = s.work
	return s
}

// ErrServed says that the project is being served already.
var ErrServed = errors.New("this process serves the project already")

// ErrOtherRepository says that the project's name means another repository on another machine.
var ErrOtherRepository = errors.New("two repositories of the fleet have the same project name")

// Start joins the fleet. The database has to be migrated; see Database.Check. Stop leaves it.
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
	set.Test.Time = &f.clock // its own way to another clock: a row that waits is woken by the leader's
	if c.Work {
		set.Workers = river.NewWorkers()
		if err := river.AddWorkerSafely(set.Workers, &worker{f: f}); err != nil {
			return nil, err
		}
		set.Queues = map[string]river.QueueConfig{idleQueue: {MaxWorkers: 1, FetchPollInterval: time.Minute}}
		set.FetchCooldown = 20 * time.Millisecond // an issue may take no longer than that
		set.JobTimeout, set.MaxAttempts = -1, 1
		set.FetchOnlyKnownKinds, set.SoftStopTimeout = true, 0
	}
	if f.client, err = river.NewClient(riverpgxv5.New(f.db.pool), set); err != nil {
		return nil, f.db.hide(err)
	}
	member, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	f.stop, f.over = stop, member.Done()
	err = errors.Join(f.announce(ctx), f.readPauses(ctx))
	if err == nil && c.Work {
		err = f.db.hide(f.client.Start(member))
	}
	if err != nil {
		stop(nil)
		return nil, err
	}
	f.beside.Go(func() { f.beat(member) })
	return f, nil
}

// maxAhead is how far a machine's clock may be from the database's without a warning. Leases and claims go by the database's;
// reports and times to try again go by the machine's.
const maxAhead, lifeTime = 30 * time.Second, 30 * time.Second // lifeTime is the default of Config.TTL

// SetParallel changes how many issues of all projects are worked here at once; 0: as many as the projects allow. Runs go on.
func (f *Fleet) SetParallel(n int) { f.slots.Set(n) }

// Now is the time by which the claims of all machines have to expire: the database's.
func (f *Fleet) Now() time.Time { return f.clock.Now() }

// idleQueue is there because River wants a queue from the start. It has no rows.
const idleQueue = "ralph-idle"

// stopTime bounds the wait for the database when a process leaves. What is not written then expires.
const stopTime = 15 * time.Second

// Stop leaves the fleet. All calls of Serve have to have returned.
func (f *Fleet) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if f.c.Work {
		if err := f.client.Stop(ctx); err != nil {
			f.c.Log.Warn("not all ended rows were written to the database; they expire", "error", f.db.hide(err))
		}
	}
	f.stop(nil)
	f.beside.Wait()
	if _, err := f.db.exec(ctx, "DELETE FROM ralph_machine WHERE id = $1", f.id); err != nil {
		f.c.Log.Debug("machine not signed off", "error", err)
	}
}

// isOver reports that the process leaves the fleet.
func (f *Fleet) isOver() bool {
	select {
	case <-f.over:
		return true
	default:
		return false
	}
}

// beat sends heartbeats until ctx ends.
func (f *Fleet) beat(ctx context.Context) {
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

// announce is a heartbeat: it writes that this process lives, and what it works.
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

// working notes that a row is being worked, until the function that it returns is called.
func (f *Fleet) working(id int64) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[id] = true
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.rows, id)
	}
}

// Serve plans and works a project until ctx ends and its runs have ended. Ending ctx stops no run: the pool's Kill and Stop do.
func (f *Fleet) Serve(ctx context.Context, p Project) error {
	p.Poll, p.Parallel = cmp.Or(p.Poll, time.Minute), max(1, p.Parallel)
	s := newServed(p)
	if err := f.add(s); err != nil {
		return err
	}
	defer func() {
		f.remove(s)
		_ = f.announce(context.WithoutCancel(ctx)) // the next heartbeat does it, too
	}()
	if err := cmp.Or(f.announce(ctx), f.sameRepository(ctx, p)); err != nil {
		return err
	}
	if err := f.reconcile(ctx, s); err != nil {
		return err
	}
	var beside sync.WaitGroup
	if f.c.Work {
		if err := s.recover(ctx); err != nil {
			return err
		}
		if err := f.take(queueOf(p.Name), p.Parallel); err != nil {
			return err
		}
		defer f.release(queueOf(p.Name))
		beside.Go(func() { f.recoverAgain(ctx, s) })
	}
	if f.c.Plan {
		beside.Go(func() { f.plan(ctx, s) })
	}
	<-ctx.Done()
	beside.Wait()
	return nil
}

// sameRepository fails when another machine has another repository under the project's name: they would share rows and records.
func (f *Fleet) sameRepository(ctx context.Context, p Project) error {
	if p.Repository == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var machine, other string
	err := f.db.pool.QueryRow(ctx, "SELECT name, repositories ->> $2 FROM ralph_machine WHERE "+alive+` AND id <> $3
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

// project is nil unless this process serves it.
func (f *Fleet) project(name string) *served {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.projects[name]
}

// take has rows of a queue worked, so many at the same time.
func (f *Fleet) take(queue string, most int) error {
	err := f.client.Queues().Add(queue, river.QueueConfig{MaxWorkers: most})
	if err != nil {
		f.release(queue) // River keeps a queue that it could not start, and would refuse it the next time
	}
	return f.db.hide(err)
}

// release takes no more rows of a queue, and waits until those that are on have ended. Each call is short, because it blocks all
// other calls of the client.
func (f *Fleet) release(queue string) {
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

// recoverAgain tries again what could not be published, recovered or written to the database before.
func (f *Fleet) recoverAgain(ctx context.Context, s *served) {
	for retry.Sleep(ctx, s.Poll) == nil {
		if err := f.reconcile(ctx, s); err != nil && ctx.Err() == nil && !f.away(ctx) {
			f.c.Log.Warn("records are not in the database yet", "project", s.Name, "error", err)
		}
		if err := s.recover(ctx); err == nil {
			s.polled(time.Now())
		} else if ctx.Err() == nil {
			f.c.Log.Warn("runs that died are not recovered yet", "project", s.Name, "error", err)
		}
	}
}
