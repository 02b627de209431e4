package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/proof"
	"github.com/ralph-pool/ralph/tracker"
)

// forge is a tracker with requests that counts calls and can fail one of them.
type forge struct {
	tracker.Tracker

	mu       sync.Mutex
	requests map[string]int // guarded by mu; number of requests asked for, by head branch
	calls    int            // guarded by mu
	fail     int            // guarded by mu; the call that fails, counted from 1; 0: none
	err      error          // guarded by mu; the error of that call
	forever  bool           // guarded by mu; all later calls of that kind fail, too
	failed   string         // guarded by mu; the kind of the call that has failed
	opening  func()         // called before a request is opened; may be nil
}

// call counts a call and returns its error.
func (f *forge) call(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls == f.fail || f.forever && f.failed == name {
		f.failed = name
		return f.err
	}
	return nil
}

func (f *forge) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	if err := f.call("list"); err != nil {
		return tracker.Listing{}, err
	}
	return f.Tracker.List(ctx, q)
}

func (f *forge) Get(ctx context.Context, key string) (tracker.Issue, error) {
	if err := f.call("get"); err != nil {
		return tracker.Issue{}, err
	}
	return f.Tracker.Get(ctx, key)
}

func (f *forge) Report(ctx context.Context, key string, r tracker.Report) error {
	if err := f.call("report"); err != nil {
		return err
	}
	return f.Tracker.Report(ctx, key, r)
}

func (f *forge) Change(ctx context.Context, key string, c tracker.Change) error {
	if err := f.call("change"); err != nil {
		return err
	}
	return f.Tracker.Change(ctx, key, c)
}

func (f *forge) OpenRequest(_ context.Context, r tracker.Request) (tracker.RequestRef, error) {
	if err := f.call("request"); err != nil {
		return tracker.RequestRef{}, err
	}
	if f.opening != nil {
		f.opening()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[r.Head]++
	return tracker.RequestRef{Number: 1, URL: "https://forge.example/1", Draft: r.Draft}, nil
}

// mortalJournal is a journal whose process dies at one of its saves.
type mortalJournal struct {
	*journaltest.Memory
	last  int  // the number of the save at which it dies
	store bool // whether that save is still stored
	die   func()

	mu    sync.Mutex
	saves int             // guarded by mu
	stage journal.Stage   // guarded by mu; of the last save that was stored
	saved []journal.Stage // guarded by mu; of all saves
	dead  bool            // guarded by mu
}

// deadPID belongs to no process: it is above the range of Linux and macOS.
const deadPID = 1 << 30

func (m *mortalJournal) Save(ctx context.Context, r journal.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saves++
	m.saved = append(m.saved, r.Stage)
	if m.dead {
		return errors.New("this process is dead")
	}
	m.dead = m.saves == m.last
	var err error
	if !m.dead || m.store {
		if m.stage = r.Stage; r.PID != 0 {
			r.PID = deadPID
		}
		err = m.Memory.Save(ctx, r)
	}
	if m.dead {
		m.die()
		runtime.Goexit() // nothing of the run continues
	}
	return err
}

// kill ends the process here.
func (m *mortalJournal) kill() {
	m.mu.Lock()
	m.dead = true
	m.mu.Unlock()
	m.die()
	runtime.Goexit()
}

// dieAt sweeps with a process that dies at a save, counted from 1. It returns its journal, and whether it died. begin receives
// the journal before the sweep.
func (f *fixture) dieAt(save int, stored bool, begin ...func(*mortalJournal)) (journaled *mortalJournal, died bool) {
	f.t.Helper()
	ctx, die := context.WithCancelCause(f.t.Context())
	defer die(nil)
	m := &mortalJournal{Memory: &f.store.Memory, last: save, store: stored, die: func() { die(nil) }}
	for _, b := range begin {
		b(m)
	}
	c := f.Config
	c.Run.Store = m
	p, err := pool.New(c)
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := p.Sweep(ctx); err != nil && !m.dead {
		f.t.Fatal(err)
	}
	return m, m.dead
}

// bury makes the claims look like those of a dead process.
func (f *fixture) bury(dir string) {
	f.t.Helper()
	f.rewriteClaims(dir, `s/"pid":[1-9][0-9]*/"pid":%d/`)
}

// buryAll does the same with claims that a sweep has left to be continued: a test ends a sweep more gently than a kill does.
func (f *fixture) buryAll(dir string) {
	f.t.Helper()
	f.rewriteClaims(dir, `s/"pid":[0-9]*/"pid":%d/`)
}

// rewriteClaims edits the claims with a sed script, which gets the id of a dead process.
func (f *fixture) rewriteClaims(dir, sed string) {
	f.t.Helper()
	for _, ref := range strings.Fields(f.git(dir, "for-each-ref", "--format=%(refname)", "refs/ralph/claims")) {
		script := fmt.Sprintf(`new=$(git cat-file commit %s | sed '`+sed+`' | git hash-object -t commit -w --stdin) && git update-ref %s $new`,
			ref, deadPID, ref)
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			f.t.Fatalf("%v\n%s", err, out)
		}
	}
}

// TestDeathAtEverySave kills ralph at every save of a run: right after the state was stored, before the stage did anything, and
// right before it was stored, when the stage before has done all of its work. Afterwards there is exactly one published result
// and one report, no claim is held, and no commit is lost. Until it publishes, a run that asks for a review does the same as one
// that merges: `make soak` kills it there, too.
func TestDeathAtEverySave(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishMerge, journal.PublishRequest} {
		t.Run(string(publish), func(t *testing.T) {
			t.Parallel()
			stages := savedStages(t, publish)
			for _, stage := range journal.Stages() {
				if !slices.Contains(stages, stage) {
					t.Errorf("no save is of stage %s", stage)
				}
			}
			for i, stage := range stages {
				if publish == journal.PublishRequest && stage.Before(journal.StagePublish) && !everything() {
					continue
				}
				for _, stored := range []bool{true, false} {
					t.Run(fmt.Sprintf("save %d of %s stored %v", i+1, stage, stored), func(t *testing.T) {
						t.Parallel()
						survive(t, publish, i+1, stored)
					})
				}
			}
		})
	}
}

// everything reports whether every case of a matrix is tested, as in `make soak`.
func everything() bool { return os.Getenv("RALPH_TEST_EVERYTHING") != "" }

// savedStages returns the stages of a run's saves, in order.
func savedStages(t *testing.T, publish journal.Publish) []journal.Stage {
	t.Helper()
	f, _, _ := mortalFixture(t, publish)
	m, _ := f.dieAt(0, true)
	return m.saved
}

// mortalFixture returns a fixture with an issue, the forge that it publishes to, and the repository that has its claims.
func mortalFixture(t *testing.T, publish journal.Publish) (f *fixture, host *forge, claims string) {
	t.Helper()
	f = newFixture(t, commits)
	claims = f.repo
	if publish != journal.PublishMerge {
		claims = f.withRemote()
	}
	host = &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
	f.Config.Run.Publish, f.Config.Run.Tracker = publish, host
	f.Config.Run.Gate = lines("test -f a.txt")
	f.issue("a")
	return f, host, claims
}

// survive lets ralph die once, and has another process end its run.
func survive(t *testing.T, publish journal.Publish, save int, stored bool) {
	t.Helper()
	f, host, claims := mortalFixture(t, publish)
	key := f.withProof()
	var told sync.Map // runs whose end was reported
	f.Config.Run.OnEnd = func(e journal.Event) { told.Store(e.Run, e.Outcome) }
	m, died := f.dieAt(save, stored)
	if !died {
		t.Fatal("ralph did not die")
	}
	stage := m.stage
	f.bury(claims)
	left := f.runs("a")

	next := f.config(commits) // another process
	next.Run.Publish, next.Run.Gate, next.Run.Protected, next.Run.Tracker = publish, f.Config.Run.Gate, f.Config.Run.Protected, host
	next.Run.OnEnd = f.Config.Run.OnEnd
	if publish != journal.PublishMerge {
		next.Run.Repo = f.open("origin")
	}
	next.Run.Proof = &proof.Prover{Repo: next.Run.Repo, Key: key, Version: "v1"}
	f.Config = next
	for range 2 {
		if s := f.sweep(t.Context()); len(s.Broken) > 0 || s.Unavailable != nil {
			t.Errorf("save %d (%s, stored %v): %+v", save, stage, stored, s)
		}
	}

	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("died at save %d (stage %s, stored %v): %s", save, stage, stored, fmt.Sprintf(format, args...))
	}
	runs := f.runs("a")
	end := runs[len(runs)-1]
	if end.Verdict.Outcome != journal.Succeeded || end.Published == "" && stage != journal.StageEnd {
		fail("the last run: %+v", end)
	}
	if lines := f.proofs(claims, end.Tip); len(lines) != 1 || end.Proof.Tip != end.Tip {
		fail("the proofs of %s are %q; %+v", end.Tip, lines, end.Proof)
	}
	text := f.text("a")
	if n := strings.Count(text, "**ralph: succeeded**"); n != 1 {
		fail("%d reports:\n%s", n, text)
	}
	if l := f.labels("a"); strings.Contains(l, "no-human") || strings.Contains(l, "needs-human") {
		fail("labels:\n%s", text)
	}
	works := 1
	if stage.Before(journal.StageVerify) && len(runs) > 1 {
		works = 2 // the second run continues on the commits of the first
	}
	branch := "main"
	switch publish {
	case journal.PublishMerge:
		if !strings.Contains(text, "state: closed") {
			fail("not closed:\n%s", text)
		}
	default:
		branch = "ralph/a"
		if tip := f.git(claims, "rev-parse", branch); tip != end.Tip {
			fail("published %s, not %s", tip, end.Tip)
		}
	}
	if n := strings.Count(f.git(claims, "log", "--format=%s%n", branch), "work on a\n"); n < 1 || n > works || stage == journal.StageEnd && n != 1 {
		fail("the work is there %d times, want at most %d", n, works)
	}
	if publish == journal.PublishRequest && (len(host.requests) != 1 || host.requests["ralph/a"] == 0) {
		fail("requests %v", host.requests)
	}
	for _, r := range append(left, runs...) {
		if outcome, _ := told.Load(r.ID); !r.Ended.IsZero() && outcome != r.Verdict.Outcome {
			fail("the end of run %s (%s) was told as %v", r.ID, r.Verdict.Outcome, outcome)
		}
		if r.Tip != "" && f.git(f.repo, "for-each-ref", "--contains", r.Tip) == "" {
			fail("commit %s is on no ref", r.Tip)
		}
		if _, err := os.Stat(filepath.Join(r.Dir, "events.jsonl")); err != nil && r.Stage != journal.StageClaim {
			fail("no events: %v", err)
		}
	}
	f.clean()
}
