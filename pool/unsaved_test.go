package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// refusingJournal is a journal that stores no record from a stage on, until off is set. died makes records look like those of a
// dead process.
type refusingJournal struct {
	*store
	from journal.Stage
	died bool
	off  atomic.Bool
}

func (r *refusingJournal) Save(ctx context.Context, rec journal.Record) error {
	if !r.off.Load() {
		if !rec.Stage.Before(r.from) {
			return errors.New("disk I/O error")
		}
		if r.died && rec.PID != 0 {
			rec.PID = deadPID
		}
	}
	return r.store.Save(ctx, rec)
}

// A run whose state cannot be stored does nothing outward, and what it has published or reported is never overwritten, by this
// process or the next.
func TestJournalRefuses(t *testing.T) {
	t.Parallel()
	for _, from := range []journal.Stage{
		journal.StagePrepare, journal.StagePublish, journal.StageReport, journal.StageLabel, journal.StageRelease, journal.StageEnd,
	} {
		for name, died := range map[string]bool{"same process": false, "next process": true} {
			t.Run(string(from)+", "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, commits)
				bare := f.withRemote()
				f.issue("a")
				s := &refusingJournal{store: f.store, from: from, died: died}
				f.Config.Run.Store = s
				p := f.pool()
				sweep := func(p *pool.Pool) pool.Summary {
					t.Helper()
					got, err := p.Sweep(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					return got
				}
				first := f.only(sweep(p))
				if first.Ended.IsZero() != (from != journal.StageEnd) {
					t.Errorf("%+v", first)
				}
				pushed := f.git(bare, "for-each-ref", "refs/heads/ralph") != ""
				if pushed == from.Before(journal.StageReport) || strings.Contains(f.text("a"), "**ralph: ") == from.Before(journal.StageLabel) {
					t.Errorf("pushed: %v, the issue says:\n%s", pushed, f.text("a"))
				}
				s.off.Store(true)
				if died {
					p = f.pool()
				}
				sweep(p)
				runs := f.runs("a")
				end := runs[len(runs)-1]
				if end.Verdict.Outcome != journal.Succeeded || end.Ended.IsZero() || !(died && from.Before(journal.StagePublish)) && end.ID != first.ID {
					t.Errorf("%d runs, the last: %+v", len(runs), end.State)
				}
				if text := f.text("a"); strings.Count(text, "**ralph: succeeded**") != 1 || !strings.Contains(f.labels("a"), "in-review") {
					t.Errorf("the issue says:\n%s", text)
				}
				f.clean()
			})
		}
	}
}

// A run whose end could not be stored reserves nothing of a cap.
func TestUnsavedEndFreesTheReservation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.withGreedy(ledger.Caps{Month: loop.Budget{Tokens: 100}})
	f.Config.Run.Options = agents.Options{Command: []string{"sh", "-c", commits}}
	f.Config.Run.Budget = loop.Budget{Tokens: 100}
	f.issue("a")
	f.Config.Run.Store = &refusingJournal{store: f.store, from: journal.StagePrepare}
	p := f.pool()
	if s, err := p.Sweep(t.Context()); err != nil || f.only(s).Reserved.Input != 100 {
		t.Fatalf("%+v, %v", s, err)
	}
	f.issue("b")
	if plan, err := p.Plan(t.Context()); err != nil || plan.Waits(journal.SkipCap) {
		t.Errorf("%+v, %v", plan.Skipped, err)
	}
}

// sharedStore is a store of several machines, on one of which another run has reserved 60 tokens.
type sharedStore struct {
	*store
	begun atomic.Int32
}

func (s *sharedStore) Begin(context.Context, string) (func() error, error) {
	s.begun.Add(1)
	return func() error { return nil }, nil
}

func (s *sharedStore) Others(context.Context, string) ([]journal.Record, error) {
	return []journal.Record{{Run: journal.Run{Reserved: agents.Usage{Input: 60}}, State: journal.State{Stage: journal.StageWork}}}, nil
}

// The runs of other machines count for the caps.
func TestCapOfASharedStore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.withGreedy(ledger.Caps{Month: loop.Budget{Tokens: 100}})
	f.Config.Run.Options = agents.Options{Command: []string{"sh", "-c", commits}}
	f.issue("a")
	s := &sharedStore{store: f.store}
	f.Config.Run.Store = s
	if r := f.one(); r.Granted.Tokens != 40 || s.begun.Load() != 1 {
		t.Errorf("granted %+v, in %d transactions", r.Granted, s.begun.Load())
	}
}
