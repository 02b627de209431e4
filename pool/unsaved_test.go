package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
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
