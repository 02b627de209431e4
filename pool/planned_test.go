package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Issues of a plan are worked as in a sweep: within the slots, and only if they still qualify.
func TestWorkPlanned(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; if [ "$RALPH_ISSUE_KEY" = fails ]; then exit 1; fi; echo work > f; git add -A; git commit -qm work; echo "<promise>COMPLETE</promise>"`)
	f.issue("good")
	f.issue("fails")
	f.Config.Run.Retry = journal.Limits{MaxAttempts: 3, Backoff: time.Hour}
	p := f.pool()
	plan, err := p.Maintain(t.Context())
	if err != nil || len(plan.Work) != 2 {
		t.Fatalf("plan %+v, %v", plan, err)
	}
	p.SetParallel(0)
	if _, err := p.WorkPlanned(t.Context(), "good", nil); !errors.Is(err, pool.ErrBusy) {
		t.Errorf("without a slot: %v", err)
	}
	p.SetParallel(1)
	for _, c := range []struct {
		key     string
		outcome journal.Outcome
		skip    journal.SkipCode
	}{
		{"good", journal.Succeeded, ""}, {"good", "", journal.SkipReview},
		{"fails", journal.Failed, ""}, {"fails", "", journal.SkipRetry},
	} {
		r, err := p.WorkPlanned(t.Context(), c.key, nil)
		if err != nil || r.Record.Verdict.Outcome != c.outcome || (r.Skip == nil) != (c.skip == "") || r.Skip != nil && r.Skip.Code != c.skip {
			t.Errorf("%s: outcome %q, skip %+v, %v; want %q, %q", c.key, r.Record.Verdict.Outcome, r.Skip, err, c.outcome, c.skip)
		}
	}
}

// A missing part is named, and nothing else.
func TestMissingPart(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*pool.Config){
		"Tracker": func(c *pool.Config) { c.Run.Tracker = nil },
		"Agent":   func(c *pool.Config) { c.Run.Agent = nil },
	} {
		c := newFixture(t, commits).Config
		remove(&c)
		if _, err := pool.New(c); err == nil || err.Error() != "Run."+name+" is required" {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
