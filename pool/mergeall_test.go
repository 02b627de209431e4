package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// branches gives the fixture issues in review, each with a branch that adds a file named after it. The gate passes on all of them
// and counts its runs in a file.
func (f *fixture) branches(gate string, keys ...string) (runs string) {
	f.t.Helper()
	runs = filepath.Join(f.t.TempDir(), "runs")
	f.Config.Run.Env = append(os.Environ(), "RUNS="+runs)
	for _, key := range keys {
		f.issue(key)
	}
	if s := f.sweep(f.t.Context()); s.Count(journal.Succeeded) != len(keys) {
		f.t.Fatalf("%v", outcomes(s))
	}
	f.Config.Run.Gate, f.Config.Run.NoCanary = lines(`echo run >>"$RUNS"; `+gate), true
	return runs
}

// on lists those of the issues whose work is on main.
func (f *fixture) on(keys ...string) (list string) {
	for _, key := range keys {
		if f.exists(key + ".txt") {
			list += key
		}
	}
	return list
}

func (f *fixture) closed(keys ...string) (list string) {
	for _, key := range keys {
		if strings.Contains(f.text(key), "state: closed") {
			list += key
		}
	}
	return list
}

// Several branches land after one run of the gate. A branch that does not fit or does not pass is named and left.
func TestMergeAll(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c", "d"}
	for _, c := range []struct {
		name, gate string
		before     func(f *fixture)
		lands      string
		want       map[string]journal.Outcome // of those that do not land
		gates      int                        // runs, including the one on main
	}{
		{"all pass", "true", func(f *fixture) { // a title reorders no merge commit
			f.write(".ralph/backlog/b.md", strings.Replace(f.text("b"), "title: Do b", `title: "Do\u202e b"`, 1))
		}, "abcd", nil, 2},
		{"one fails", "test ! -f c.txt", func(*fixture) {}, "abd", map[string]journal.Outcome{"c": journal.GateFailed}, 6},
		{"a conflict", "true", func(f *fixture) {
			f.write("b.txt", "mine\n")
			f.commit("mine")
		}, "acd", map[string]journal.Outcome{"b": journal.Failed}, 4},
		{"main fails, and one repairs it", "test -f d.txt", func(*fixture) {}, "d", map[string]journal.Outcome{"a": journal.GateFailed, "b": journal.GateFailed, "c": journal.GateFailed}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			runs := f.branches(c.gate, keys...)
			c.before(f)
			for _, r := range f.pool().MergeAll(t.Context(), append(keys, "gone")) {
				switch out := r.Record.Verdict.Outcome; {
				case r.Issue.Key == "gone":
					if r.Err == nil {
						t.Errorf("of gone: %+v", r)
					}
				case r.Err != nil || r.Skip != nil, strings.Contains(c.lands, r.Issue.Key) != (out == journal.Succeeded && r.Closed), c.want[r.Issue.Key] != "" && c.want[r.Issue.Key] != out:
					t.Errorf("%s: %+v, %v, %+v", r.Issue.Key, r.Record.Verdict, r.Err, r.Skip)
				}
			}
			if got := strings.ReplaceAll(f.on(keys...), "b", ""); got != strings.ReplaceAll(c.lands, "b", "") || f.closed(keys...) != c.lands {
				t.Errorf("main has %s, closed are %s", got, f.closed(keys...))
			}
			text, err := os.ReadFile(runs)
			if n := strings.Count(string(text), "run\n"); err != nil || n > c.gates {
				t.Errorf("the gate ran %d times, want at most %d; %v", n, c.gates, err)
			}
			if status := f.git(f.repo, "status", "--porcelain"); status != "" {
				t.Errorf("the checkout: %s", status)
			}
			if log := f.git(f.repo, "log", "--format=%s"); strings.Contains(log, "\u202e") || strings.Contains(c.lands, "b") && !strings.Contains(log, "Merge ralph/b: Do b") {
				t.Errorf("%q", log)
			}
			f.clean()
		})
	}
}

// A branch that disables a check does not make others pass: it is merged alone, after them.
func TestMergeAllBesideChangedChecks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.write("check.sh", "test ! -f b.txt\n")
	f.commit("check")
	f.branches("sh check.sh", "a", "b", "c", "d")
	dir := filepath.Join(t.TempDir(), "w")
	f.git(f.repo, "worktree", "add", "-q", dir, "ralph/a")
	if err := os.WriteFile(filepath.Join(dir, "check.sh"), []byte("exit 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.git(dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "no check")
	f.git(f.repo, "worktree", "remove", dir)
	var order string
	for _, r := range f.pool().MergeAll(t.Context(), []string{"a", "b", "c", "d"}) {
		order += r.Issue.Key
		if want := r.Issue.Key != "b"; r.Closed != want || (r.Record.Verdict.Reason.Code == journal.ReasonChecks) != (r.Issue.Key == "a") {
			t.Errorf("%s: %+v", r.Issue.Key, r.Record.Verdict)
		}
	}
	if got := f.on("a", "b", "c", "d"); got != "acd" || !strings.HasSuffix(order, "a") {
		t.Errorf("main has %s, in the order %s", got, order)
	}
}

// Issues that are being worked are left alone, and so is a batch whose base is checked out with changes in the way.
func TestMergeAllLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.branches("true", "a", "b", "c")
	claim, err := f.Config.Run.Repo.Claim(t.Context(), "b", worktree.Holder{Owner: "elsewhere/1/x", Run: "r"}, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	f.write("c.txt", "mine\n") // in the way
	for _, r := range f.pool().MergeAll(t.Context(), []string{"a", "b", "c"}) {
		switch r.Issue.Key {
		case "a":
			if !r.Closed {
				t.Errorf("%+v", r)
			}
		case "b":
			if r.Skip == nil || r.Skip.Code != journal.SkipClaimed {
				t.Errorf("%+v", r)
			}
		case "c":
			if !errors.Is(r.Err, worktree.ErrDirty) {
				t.Errorf("%+v", r)
			}
		}
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.clean()
}

// Ralph dies at every save of a batch. Nothing is half merged: main has all of it or nothing. The next sweep reports and closes
// the issues whose work main has; another call merges the rest.
func TestDeathInABatch(t *testing.T) {
	t.Parallel()
	keys := []string{"a", "b", "c"}
	die := func(t *testing.T, save int, stored bool) (f *fixture, saves int) {
		f = newFixture(t, commits)
		f.branches("true", keys...)
		ctx, die := context.WithCancelCause(t.Context())
		defer die(nil)
		m := &mortalJournal{Memory: &f.store.Memory, last: save, store: stored, die: func() { die(nil) }}
		c := f.Config
		c.Run.Store = m
		p, err := pool.New(c)
		if err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		go func() { // it ends there
			defer close(over)
			p.MergeAll(ctx, keys)
		}()
		<-over
		return f, m.saves
	}
	_, saves := die(t, 0, true)
	for save := range saves {
		if save > 7 && save%5 != 0 && !everything() {
			continue
		}
		for _, stored := range []bool{true, false} {
			if stored != (save%2 == 0) && !everything() {
				continue
			}
			t.Run(fmt.Sprint(save+1, stored), func(t *testing.T) {
				t.Parallel()
				f, _ := die(t, save+1, stored)
				f.bury(f.repo)
				if on := f.on(keys...); on != "" && on != "abc" {
					t.Errorf("main has %s", on)
				}
				f.Config = f.config(commits)
				if s := f.sweep(t.Context()); len(s.Broken) > 0 || s.Unavailable != nil {
					t.Errorf("%+v", s)
				}
				if f.on(keys...) != f.closed(keys...) {
					t.Errorf("main has %q, closed are %q", f.on(keys...), f.closed(keys...))
				}
				for _, r := range f.pool().MergeAll(t.Context(), keys) {
					if f.on(keys...) == "" && r.Err != nil {
						t.Errorf("%+v", r)
					}
				}
				if f.on(keys...) != "abc" || f.closed(keys...) != "abc" {
					t.Errorf("main has %q, closed are %q", f.on(keys...), f.closed(keys...))
				}
				f.clean()
			})
		}
	}
	if saves < 8 {
		t.Errorf("only %d saves", saves)
	}
}

// A stop ends MergeAll while it waits for the merge lock, which a run may hold for as long as its gate takes.
func TestMergeAllStopsWhileOthersMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.branches("true", "a", "b")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	unlock, err := f.Config.Run.Repo.LockMerges(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begun := 0
	f.onStage(journal.StageClaim, func(journal.Record) {
		if begun++; begun == 2 {
			stop(nil)
		}
	})
	results := f.pool().MergeAll(ctx, []string{"a", "b"})
	unlock()
	if len(results) != 2 || begun != 2 {
		t.Errorf("%+v", results)
	}
	for _, r := range results {
		if r.Skip == nil || r.Skip.Code != journal.SkipStopped || r.Err != nil {
			t.Errorf("%s: %+v, %v", r.Issue.Key, r.Skip, r.Err)
		}
	}
	f.onStage(journal.StageClaim, nil)
	if len(f.runs("a")) != 1 || f.on("a", "b") != "" {
		t.Errorf("%d runs; main has %s", len(f.runs("a")), f.on("a", "b"))
	}
	f.clean()
}

// A commit that a person has removed from the base does not come back with several branches that are merged together.
func TestMergeAllLeavesOutWhatTheBaseHasLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo x >"$RALPH_ISSUE_KEY.txt"; git add .; git commit -qm work`+done)
	f.write("unwanted", "x\n")
	f.commit("unwanted")
	for _, key := range []string{"a", "b"} {
		f.issue(key)
		f.one(key)
	}
	f.git(f.repo, "reset", "-q", "--hard", "HEAD~1")
	for _, r := range f.pool().MergeAll(t.Context(), []string{"a", "b"}) {
		if r.Err != nil || r.Record.Verdict.Outcome != journal.Succeeded {
			t.Errorf("%+v, %v", r.Record.Verdict, r.Err)
		}
	}
	if got := f.git(f.repo, "log", "--format=%s", "main"); strings.Contains(got, "unwanted") || strings.Count(got, "work") != 2 || f.exists("unwanted") {
		t.Errorf("main:\n%s", got)
	}
	f.clean()
}
