package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/base"
)

// A sweep notices that a person has merged a branch: it closes the issue, and works the issues that waited for it.
func TestMergeByHandIsNoticed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		by     func(f *fixture)
		merged bool
	}{
		{"nothing", func(*fixture) {}, false},
		{"fast-forward", func(f *fixture) { f.git(f.repo, "merge", "-q", "--ff-only", "ralph/a") }, true},
		{"merge commit, branch deleted", func(f *fixture) {
			f.git(f.repo, "merge", "-q", "--no-ff", "--no-edit", "ralph/a")
			f.git(f.repo, "branch", "-d", "ralph/a")
		}, true},
		{"rebase", func(f *fixture) {
			f.write("other", "x\n")
			f.commit("other")
			f.git(f.repo, "switch", "-q", "ralph/a")
			f.git(f.repo, "rebase", "-q", "main")
			f.git(f.repo, "switch", "-q", "main")
			f.git(f.repo, "merge", "-q", "--ff-only", "ralph/a")
		}, true},
		{"squash", func(f *fixture) {
			f.write("other", "x\n")
			f.commit("other")
			f.git(f.repo, "merge", "-q", "--squash", "ralph/a")
			f.git(f.repo, "commit", "-qm", "a, squashed")
		}, true},
		{"history begun anew", func(f *fixture) {
			f.git(f.repo, "switch", "-q", "--orphan", "anew")
			f.write("new", "x\n")
			f.commit("anew")
			f.git(f.repo, "branch", "-qM", "anew", "main")
		}, false},
		{"branch reset", func(f *fixture) { f.git(f.repo, "branch", "-f", "ralph/a", "main") }, false},
		{"more commits on the branch", func(f *fixture) {
			f.git(f.repo, "merge", "-q", "--ff-only", "ralph/a")
			f.git(f.repo, "switch", "-q", "ralph/a")
			f.write("more", "x\n")
			f.commit("more")
			f.git(f.repo, "switch", "-q", "main")
		}, false},
		{"branch checked out", func(f *fixture) { f.git(f.repo, "switch", "-q", "ralph/a") }, false},
		{"a person wants more", func(f *fixture) {
			f.git(f.repo, "merge", "-q", "--ff-only", "ralph/a")
			f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "in-review", "in-review, no-human", 1))
		}, false},
		{"a person has taken it", func(f *fixture) {
			f.git(f.repo, "merge", "-q", "--ff-only", "ralph/a")
			f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "in-review", "mine", 1))
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			f.issue("a")
			f.issue("b", "blocked_by: [a]")
			f.one()
			c.by(f)
			own := strings.HasPrefix(f.git(f.repo, "rev-parse", "--abbrev-ref", "HEAD"), "ralph/") // with such a branch checked out a sweep does nothing
			plan, err := f.pool().Preview(t.Context())
			if (err != nil) != own || own && !errors.Is(err, base.ErrOwn) {
				t.Fatal(err)
			}
			has := func(list []tracker.Issue, key string) bool {
				return slices.ContainsFunc(list, func(i tracker.Issue) bool { return i.Key == key })
			}
			if has(plan.Merged, "a") != c.merged || has(plan.Work, "b") != c.merged {
				t.Errorf("a sweep would close %+v and work %+v", plan.Merged, plan.Work)
			}
			s, err := f.pool().Sweep(t.Context())
			if (err != nil) != own || own && !errors.Is(err, base.ErrOwn) {
				t.Fatal(err)
			}
			if closed := strings.Contains(f.text("a"), "state: closed"); closed != c.merged || closed != slices.ContainsFunc(s.Runs, func(r journal.Record) bool { return r.Key == "b" }) {
				t.Errorf("closed %v, runs %+v; the issue:\n%s", closed, s.Runs, f.text("a"))
			}
			if c.merged && strings.Contains(f.labels("a"), "in-review") {
				t.Errorf("labels: %s", f.labels("a"))
			}
			if told := slices.ContainsFunc(f.events, func(e journal.Event) bool { return e.Kind == journal.EventMerged }); told != c.merged {
				t.Errorf("told %v", told)
			}
		})
	}
}

// A merge driver of the user's that keeps the base's version of a file does not prove that the commits were not merged.
func TestMergeDriverThatDropsTheWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "cat >/dev/null; echo b > a.lock; git commit -qam b"+done)
	f.write("a.lock", "a\n")
	f.commit("lock")
	f.write(".git/info/attributes", "a.lock merge=ours\n")
	f.git(f.repo, "config", "merge.ours.driver", "true")
	f.issue("a")
	f.one()
	f.write("a.lock", "c\n")
	f.commit("another lock")
	if plan, err := f.pool().Preview(t.Context()); err != nil || len(plan.Merged) != 0 {
		t.Errorf("merged is %+v, %v", plan.Merged, err)
	}
}

// A backlog that returns to an older state, for example by git stash, asks for nothing. A person who puts the label back, or
// names the issue, does.
func TestOlderBacklog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	before := f.text("a")
	f.one()
	done := f.text("a")
	work := func(text string, want int, keys ...string) {
		t.Helper()
		f.write(".ralph/backlog/a.md", text)
		if s := f.sweep(t.Context(), keys...); len(s.Runs) != want {
			t.Errorf("%d runs, want %d, skipped %+v:\n%s", len(s.Runs), want, s.Skipped, text)
		}
	}
	work(before, 0)
	work(strings.Replace(before, "Please do a.", "Please do a, and b.", 1), 1)
	work(before, 1, "a")
	latest := f.text("a")
	work(strings.Replace(done, "in-review", "no-human", 1), 0)
	work(strings.Replace(latest, "in-review", "no-human", 1), 1)
}

// A person merges the commits of a run: every check holds except the one on changed checks, and no agent runs.
func TestMerge(t *testing.T) {
	t.Parallel()
	const change = `cat >/dev/null; echo "test -f README" > check.sh; echo a > a.txt; git add -A; git commit -qm work` + done
	moved := func(f *fixture) {
		f.write("other", "x\n")
		f.commit("other")
	}
	for _, c := range []struct {
		name, agent, gate string
		publish           journal.Publish
		before            func(f *fixture)
		want              journal.Outcome
	}{
		{"as it is", commits, "test -f a.txt || test -z \"$(git log --format=%s | grep work)\"", journal.PublishBranch, func(*fixture) {}, journal.Succeeded},
		{"base has moved", commits, "true", journal.PublishBranch, moved, journal.Succeeded},
		{"gate fails on the new base", commits, "test ! -f a.txt || test ! -f other", journal.PublishBranch, moved, journal.GateFailed},
		{"conflict", commits, "true", journal.PublishBranch, func(f *fixture) {
			f.write("a.txt", "mine\n")
			f.commit("mine")
		}, journal.Failed},
		{"changed checks", change, "sh check.sh", journal.PublishMerge, func(*fixture) {}, journal.Succeeded},
		{"protected path", evil + "git commit -qm evil" + done, "true", journal.PublishMerge, func(*fixture) {}, journal.PolicyBlocked},
		{"commits of a person", commits, "true", journal.PublishBranch, func(f *fixture) {
			f.git(f.repo, "switch", "-q", "ralph/a")
			f.write("more", "x\n")
			f.commit("more")
			f.git(f.repo, "switch", "-q", "main")
		}, journal.Succeeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, c.agent)
			f.write("check.sh", "true\n")
			f.commit("check")
			f.Config.Run.Publish, f.Config.Run.Protected, f.Config.Run.Gate = c.publish, publish.ProtectedPaths(), lines(c.gate)
			f.issue("a")
			first := f.one()
			if strings.Contains(f.text("a"), "state: closed") {
				t.Fatalf("the run has closed the issue: %+v", first.Verdict)
			}
			c.before(f)
			at := f.git(f.repo, "rev-parse", "main")
			r, err := f.pool().Merge(t.Context(), "a")
			if err != nil || r.Record.Verdict.Outcome != c.want {
				t.Fatalf("%+v, %v, want %s; skipped: %+v", r.Record.Verdict, err, c.want, r.Skip)
			}
			if n := len(r.Record.Facts.Iterations); n > 0 {
				t.Errorf("%d iterations", n)
			}
			merged := c.want == journal.Succeeded
			if closed := strings.Contains(f.text("a"), "state: closed"); closed != merged {
				t.Errorf("closed %v; the issue:\n%s", closed, f.text("a"))
			}
			if now := f.git(f.repo, "rev-parse", "main"); (now != at) != merged || f.exists("a.txt") != (merged || c.name == "conflict") {
				t.Errorf("main was %s and is %s", at, now)
			}
			if l := f.labels("a"); merged && strings.Contains(l, "in-review") || !merged && !strings.Contains(l, "needs-human") {
				t.Errorf("labels: %s", l)
			}
			f.clean()
			if !merged {
				return
			}
			if _, err := f.pool().Merge(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "no change that main lacks") {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

// A file of the user's that is in the way is named before anything runs, and the issue is not changed.
func TestMergePastAFileInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo theirs >new; git add new; git commit -qm new`+done)
	f.issue("a")
	f.one()
	before := f.text("a")
	f.write("new", "mine\n")
	p := f.pool()
	if _, err := p.Merge(t.Context(), "a"); !errors.Is(err, worktree.ErrDirty) || !strings.Contains(err.Error(), "(new)") {
		t.Errorf("%v", err)
	}
	if len(f.runs("a")) != 1 || f.text("a") != before {
		t.Errorf("%d runs; the issue says:\n%s", len(f.runs("a")), f.text("a"))
	}
	if err := os.Remove(filepath.Join(f.repo, "new")); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Merge(t.Context(), "a"); err != nil || !r.Closed {
		t.Errorf("%+v, %v", r, err)
	}
	f.clean()
}

// imageProvider is a sandbox whose programs come from an image.
type imageProvider struct {
	sandboxes.Provider
	image string
}

func (i imageProvider) HomeKey(context.Context) (string, error) { return i.image, nil }

// Commits for which the gate has passed are merged without running it again, but only under the same conditions.
func TestMergeOfWhatHasPassed(t *testing.T) {
	t.Parallel()
	last := func(f *fixture, change func(*journal.Record)) {
		r := f.runs("a")[0]
		change(&r)
		if err := f.store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(f *fixture)
		again  bool
	}{
		"as it is":                         {func(*fixture) {}, false},
		"the result on the base is gone":   {func(f *fixture) { _ = os.RemoveAll(filepath.Join(f.state, "baselines")) }, false},
		"what changed checks mean":         {func(f *fixture) { f.Config.Run.GateFiles = journal.GateFilesBlock }, false},
		"another base":                     {func(f *fixture) { f.write("other", "x\n"); f.commit("other") }, true},
		"another commit of the same files": {func(f *fixture) { f.onBranch("commit", "-q", "--amend", "-m", "other") }, true},
		"one more commit":                  {func(f *fixture) { f.onBranch("commit", "-q", "--allow-empty", "-m", "more") }, true},
		"another gate":                     {func(f *fixture) { f.Config.Run.Gate = append(f.Config.Run.Gate, lines("true")...) }, true},
		"another setup":                    {func(f *fixture) { f.Config.Run.Setup = lines("true") }, true},
		"another environment":              {func(f *fixture) { f.Config.Run.Env = []string{"A=b"} }, true},
		"another host command":             {func(f *fixture) { f.Config.Run.Before = []string{"true"} }, true},
		"no canary before":                 {func(f *fixture) { f.Config.Run.NoCanary = false }, true},
		"another canary":                   {func(f *fixture) { f.Config.Run.Canaries = []config.Canary{{Path: "bad", Content: []byte("x")}} }, true},
		"another image":                    {func(f *fixture) { f.Config.Run.Sandboxes = imageProvider{f.Config.Run.Sandboxes, "two"} }, true},
		"a day later": {func(f *fixture) {
			last(f, func(r *journal.Record) { r.Verified.At = r.Verified.At.Add(-workspace.ResultLife) })
		}, true},
		"the run has passed another commit": {func(f *fixture) { last(f, func(r *journal.Record) { r.Verified.Tip = r.Verified.Base }) }, true},
		"the run has not succeeded":         {func(f *fixture) { last(f, func(r *journal.Record) { r.Verdict.Outcome = journal.GateFailed }) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, commits)
			ran := filepath.Join(t.TempDir(), "ran")
			r := &f.Config.Run
			r.Publish, r.Gate, r.NoCanary, r.Sandboxes = journal.PublishBranch, lines("echo x >>"+ran), true, imageProvider{r.Sandboxes, "one"}
			f.issue("a")
			if first := f.one(); first.Verified.Tip != first.Tip {
				t.Fatalf("%+v", first)
			}
			c.change(f)
			if err := os.Remove(ran); err != nil {
				t.Fatal(err)
			}
			got, err := f.pool().Merge(t.Context(), "a")
			if err != nil || !got.Closed || got.Record.Verified.Tip != got.Record.Tip || got.Record.Facts.Verify == nil {
				t.Fatalf("%+v, %v", got, err)
			}
			if tip := f.git(f.repo, "rev-parse", "main"); tip != got.Record.Tip {
				t.Errorf("main is %s, verified %s", tip, got.Record.Tip)
			}
			if _, err := os.Stat(ran); (err == nil) != c.again {
				t.Errorf("the gate ran: %v, want %v", err == nil, c.again)
			}
			if said := slices.ContainsFunc(f.events, func(e journal.Event) bool { return strings.HasSuffix(e.Text, "and is not run again") }); said == c.again {
				t.Errorf("said that the gate is not run: %v", said)
			}
			f.clean()
		})
	}
}

// onBranch runs git on the branch of issue a.
func (f *fixture) onBranch(args ...string) {
	f.t.Helper()
	f.git(f.repo, "switch", "-q", "ralph/a")
	f.git(f.repo, args...)
	f.git(f.repo, "switch", "-q", "main")
}

// If a merge has died at any point, the same call finishes it: the base gets the commits once, and the issue is closed.
func TestMergeThatDied(t *testing.T) {
	t.Parallel()
	dieAt := func(t *testing.T, save int, stored bool) (*fixture, *mortalJournal) {
		t.Helper()
		f := newFixture(t, commits)
		f.issue("a")
		f.one()
		f.write("other", "x\n")
		f.commit("other")
		m := &mortalJournal{Memory: &f.store.Memory, last: save, store: stored, die: func() {}}
		c := f.Config
		c.Run.Store = m
		p, err := pool.New(c)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if r, err := p.Merge(t.Context(), "a"); err != nil || !r.Closed {
				t.Errorf("%+v, %v", r, err)
			}
		}()
		<-ended
		return f, m
	}
	_, m := dieAt(t, 0, true)
	for i, stage := range m.saved {
		for _, stored := range []bool{true, false} {
			if stored && i == len(m.saved)-1 {
				continue // it had ended
			}
			if stored != (i%2 == 0) && i < len(m.saved)-1 && !everything() {
				continue
			}
			t.Run(fmt.Sprintf("save %d of %s stored %v", i+1, stage, stored), func(t *testing.T) {
				t.Parallel()
				f, m := dieAt(t, i+1, stored)
				if !m.dead {
					t.Fatal("it is alive")
				}
				f.bury(f.repo)
				r, err := f.pool().Merge(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				rec := r.Record
				if len(r.Finished) > 0 {
					rec = r.Finished[0]
				}
				if !rec.Merges(rec.Verdict) || rec.Published == "" || len(rec.Facts.Iterations) > 0 {
					t.Errorf("%+v, skipped %+v, finished %+v", rec.Verdict, r.Skip, r.Finished)
				}
				if !strings.Contains(f.text("a"), "state: closed") {
					t.Errorf("the issue:\n%s", f.text("a"))
				}
				if log := f.git(f.repo, "log", "--format=%s", "main"); log != "work on a\nother\ninit" {
					t.Errorf("the base has:\n%s", log)
				}
				f.clean()
			})
		}
	}
}

// A run of the agent's that had died is finished first, and then merged.
func TestMergeAfterARunThatDied(t *testing.T) {
	t.Parallel()
	probe := newFixture(t, commits)
	probe.issue("a")
	m, _ := probe.dieAt(0, true)
	f := newFixture(t, commits)
	f.issue("a")
	if _, died := f.dieAt(slices.Index(m.saved, journal.StageReport)+1, true); !died {
		t.Fatal("it is alive")
	}
	f.bury(f.repo)
	if r, err := f.pool().Merge(t.Context(), "a"); err != nil || !r.Closed || r.Record.Published == "" || len(f.runs("a")) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	f.clean()
}

// A merge that had to wait for the user's changes in the checkout is finished by the next one.
func TestMergeThatHadToWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.one()
	f.onStage(journal.StagePublish, func(journal.Record) { f.write("a.txt", "mine\n") })
	p := f.pool()
	if r, err := p.Merge(t.Context(), "a"); err == nil || !r.Record.Ended.IsZero() {
		t.Fatalf("%+v, %v", r, err)
	}
	f.onStage("", nil)
	if r, err := p.Merge(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "(a.txt) are in the way") || len(r.Finished) > 0 {
		t.Errorf("while it still has to: %+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(f.repo, "a.txt")); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Merge(t.Context(), "a"); err != nil || len(r.Finished) != 1 || r.Finished[0].Published == "" || !strings.Contains(f.text("a"), "state: closed") {
		t.Errorf("%+v, %v; the issue:\n%s", r, err, f.text("a"))
	}
	f.clean()
}

// A merge checks the commits on a clean checkout, even if runs do not: commits whose gate has failed are not merged.
func TestMergeOfAFailedGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.GateOn, f.Config.Run.MaxIterations, f.Config.Run.NoCanary = config.GateOnWorktree, 1, true
	f.Config.Run.Gate = lines("test ! -f a.txt")
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.GateFailed {
		t.Fatalf("the run: %+v", r.Verdict)
	}
	before := f.git(f.repo, "rev-parse", "main")
	r, err := f.pool().Merge(t.Context(), "a")
	if err != nil || r.Record.Verdict.Outcome != journal.GateFailed {
		t.Errorf("the merge: %+v, %v", r.Record.Verdict, err)
	}
	if at := f.git(f.repo, "rev-parse", "main"); at != before || strings.Contains(f.text("a"), "state: closed") {
		t.Errorf("main is at %s, was at %s; the issue:\n%s", at, before, f.text("a"))
	}
}

// An unattended merge has no person who looks at it: an issue that has changed meanwhile is left to a person.
func TestMergeOfAnEditedIssue(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Publish = journal.PublishMerge
	f.issue("a")
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write(".ralph/backlog/a.md", f.text("a")+"\nAnd one more thing.\n")
	})
	before := f.git(f.repo, "rev-parse", "main")
	r := f.one()
	if v := r.Verdict; v.Outcome != journal.Succeeded || v.Reason.Code != journal.ReasonEdited || v.Unattended() {
		t.Errorf("%+v", v)
	}
	if at := f.git(f.repo, "rev-parse", "main"); at != before || !strings.Contains(f.text("a"), "in-review") {
		t.Errorf("main is at %s, was at %s; the issue:\n%s", at, before, f.text("a"))
	}
	f.onStage("", nil)
	if r, err := f.pool().Merge(t.Context(), "a"); err != nil || r.Record.Verdict.Outcome != journal.Succeeded || !r.Closed {
		t.Errorf("a person's merge: %+v, %v", r.Record.Verdict, err)
	}
}
