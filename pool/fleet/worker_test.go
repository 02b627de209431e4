package fleet

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
)

// A row that a machine has taken but cannot work, because its slots are full, it is draining or it lacks the
// issue, is worked later.
func TestRowComesBack(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]error{"busy": pool.ErrBusy, "ended": pool.ErrEnded, "no such issue here": tracker.ErrNotFound} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Start(t.Context(), Config{Database: migrated(t), Plan: true, Work: true})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Stop()
			s := newServed(Project{Name: "p", Claims: held{}, Parallel: 1, Poll: time.Hour})
			calls, answers := make(chan struct{}), make(chan error, 2)
			answers <- why
			answers <- nil
			s.do = func(context.Context, row) (pool.Result, error) {
				calls <- struct{}{}
				return pool.Result{}, <-answers
			}
			if err := f.add(s); err != nil {
				t.Fatal(err)
			}
			if err := f.announce(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := f.client.Queues().Add(queueOf("p"), river.QueueConfig{MaxWorkers: 1}); err != nil {
				t.Fatal(err)
			}
			planningOf(f, s).mustInsert(t, "k")
			for call := range 2 {
				select {
				case <-calls:
				case <-time.After(time.Minute):
					t.Fatalf("call %d has not come; rows are %q", call+1, rows(t, f.db))
				}
			}
		})
	}
}

// A run that panics keeps no slot: the claim of its issue may be free, and the planner would count the slot for ever.
func TestPanicFreesTheSlot(t *testing.T) {
	t.Parallel()
	f, err := Start(t.Context(), Config{Database: migrated(t), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	s := newServed(Project{Name: "p", Claims: held{}, Parallel: 1, Limit: 1, Poll: time.Hour})
	s.do = func(context.Context, row) (pool.Result, error) { panic("broken") }
	if err := f.add(s); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("River does not see the panic")
			}
		}()
		_ = (&worker{f: f}).Work(t.Context(), &river.Job[row]{JobRow: &rivertype.JobRow{ID: 1}, Args: row{Project: "p", Key: "k"}})
	}()
	if n := number(t, f.db, "SELECT count(*) FROM ralph_lease"); n != 0 {
		t.Errorf("%d slots are held", n)
	}
}

// A queue that River could not start because the database was away can be taken once it is back.
func TestQueueIsTakenAfterOutage(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, err := Start(t.Context(), Config{Database: d, Work: true, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	for _, step := range []struct {
		sql string
		ok  bool
	}{{"ALTER TABLE river_queue RENAME TO away", false}, {"ALTER TABLE away RENAME TO river_queue", true}} {
		if _, err := d.exec(t.Context(), step.sql); err != nil {
			t.Fatal(err)
		}
		if err := f.startQueue(queueOf("p"), 1); (err == nil) != step.ok {
			t.Errorf("after %s: error %v", step.sql, err)
		}
	}
}

// A machine that fails to work an issue leaves the project to others for a while, and says why.
func TestMachineThatCannotWorkRests(t *testing.T) {
	t.Parallel()
	f, err := Start(t.Context(), Config{Database: migrated(t), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	s := newServed(Project{Name: "p", Claims: held{}, Parallel: 1, Poll: time.Hour})
	if err := f.add(s); err != nil {
		t.Fatal(err)
	}
	f.recordEnd(t.Context(), s, "gone", pool.Result{}, tracker.ErrNotFound)
	if s.restLeft(time.Now()) > 0 || f.PauseReason("p") != nil {
		t.Errorf("an issue that is gone: %v", f.PauseReason("p"))
	}
	f.recordEnd(t.Context(), s, "k", pool.Result{}, errors.New("read-only file system"))
	if err := f.PauseReason("p"); s.restLeft(time.Now()) <= 0 || err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("rests %s, held by %v", s.restLeft(time.Now()), err)
	}
	s.notePoll(time.Now())
	if f.PauseReason("p") == nil {
		t.Error("a poll while it rests ends the trouble")
	}
	if err := s.trouble(time.Now().Add(restMin + restMax + time.Second)); err != nil {
		t.Errorf("long after the last try: %v", err)
	}
	s.notePoll(time.Now().Add(restMin + time.Second))
	if err := f.PauseReason("p"); err != nil {
		t.Errorf("after a poll once it has rested: %v", err)
	}
	f.recordEnd(t.Context(), s, "k", pool.Result{}, errors.New("read-only file system"))
	f.recordEnd(t.Context(), s, "k", pool.Result{}, nil)
	if err := f.PauseReason("p"); err != nil {
		t.Errorf("it works again: %v", err)
	}
}

// An issue that this machine cannot work is logged once for each reason, however often it returns.
func TestIssueThatIsNotWorkedIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	f := &Fleet{c: Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, db: migrated(t)}
	s := newServed(Project{Name: "p"})
	logged := func() int { return strings.Count(log.String(), "issue not worked") }
	for n, c := range []struct {
		key  string
		err  error
		want int
	}{
		{"a", tracker.ErrNotFound, 1},
		{"a", tracker.ErrNotFound, 1},
		{"b", tracker.ErrNotFound, 2},
		{"a", tracker.ErrStale, 3},
		{"a", tracker.ErrStale, 3},
		{"a", nil, 3},
		{"a", tracker.ErrStale, 4},
	} {
		if f.recordEnd(t.Context(), s, c.key, pool.Result{}, c.err); logged() != c.want {
			t.Errorf("result %d: %d lines, want %d", n, logged(), c.want)
		}
	}
	for n := range 2 * maxReasons {
		s.isNews(strconv.Itoa(n), tracker.ErrNotFound)
	}
	if len(s.loggedReasons) > maxReasons {
		t.Errorf("%d issues are remembered", len(s.loggedReasons))
	}
}
