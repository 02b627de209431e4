package pool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
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

// A planned run asks the remote once before its agent begins: for base and branch, after the claim.
func TestWorkPlannedAsksTheRemoteOnce(t *testing.T) {
	t.Parallel()
	for _, gate := range [][]string{nil, {"true"}} {
		f := newFixture(t, commits)
		bare := f.withRemote()
		f.Config.Run.Gate = lines(gate...)
		f.issue("before") // its gate has run on the base
		f.one()
		f.issue("a")
		asked := filepath.Join(t.TempDir(), "asked")
		script := fmt.Sprintf("#!/bin/sh\necho $(git --git-dir='%s' for-each-ref --format=claimed refs/ralph/claims/a) >>'%s'\nexec git-upload-pack \"$@\"\n", bare, asked)
		if err := os.WriteFile(asked+".sh", []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		f.git(f.repo, "config", "remote.origin.uploadpack", asked+".sh")
		var seen []byte
		f.onStage(journal.StageWork, func(journal.Record) { seen, _ = os.ReadFile(asked) })
		if r, err := f.pool().WorkPlanned(t.Context(), "a", nil); err != nil || r.Record.Verdict.Outcome != journal.Succeeded || r.Skip != nil {
			t.Fatalf("%+v, %v", r, err)
		}
		if string(seen) != "claimed\n" {
			t.Errorf("with the gate %q it has asked like this: %q", gate, seen)
		}
		f.clean()
	}
}

// If the remote has no base for a request, the run ends before its agent begins, and releases the claim.
func TestWorkPlannedWithoutBase(t *testing.T) {
	t.Parallel()
	for _, gate := range [][]string{nil, {"true"}} {
		f := newFixture(t, "exit 1")
		bare := f.withRemote()
		f.git(bare, "branch", "-m", "main", "moved")
		f.Config.Run.Publish, f.Config.Run.Gate = journal.PublishRequest, lines(gate...)
		f.Config.Run.Tracker = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
		f.issue("a")
		r, err := f.pool().WorkPlanned(t.Context(), "a", nil)
		if err != nil || !errors.Is(r.Unavailable, worktree.ErrRemote) || r.Record.Verdict.Outcome != journal.Interrupted {
			t.Errorf("with the gate %q: %+v, %v; %v", gate, r.Record.Verdict, r.Unavailable, err)
		}
		if states, err := f.Config.Run.Repo.Claims(t.Context()); err != nil || !states["a"].Gone {
			t.Errorf("claims: %+v, %v", states, err)
		}
	}
}
