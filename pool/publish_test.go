package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/tracker"
)

// The messages of an agent's commits have no effect on a forge. The gate's commits are the published ones: the tip stays the
// same.
func TestMessagesActOnNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > out; git add -A; git commit -qm "Fixes #2, thanks @team [skip ci]"`+done)
	f.issue("one")
	ran := filepath.Join(t.TempDir(), "ran")
	f.Config.Run.Publish, f.Config.Run.Gate = journal.PublishMerge, lines("git log -1 --format=%H >> "+ran)
	r := f.one()
	if r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", r.Verdict)
	}
	if log := f.git(f.repo, "log", "--format=%s", "main"); !strings.HasPrefix(log, "Fixes # 2, thanks @ team [ skip ci]\n") {
		t.Errorf("merged: %s", log)
	}
	if got, err := os.ReadFile(ran); !strings.HasSuffix(string(got), r.Tip+"\n") || err != nil || r.Verified.Tip != r.Tip {
		t.Errorf("the gate ran on %q, published was %s, %v", got, r.Tip, err)
	}
	f.clean()
}

// Commits based on an older commit than the base are rebased onto it before the gate runs, not after.
func TestCommitsBeforeTheBase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; git reset -q --hard HEAD^; echo work > work; git add -A; git commit -qm work`+done)
	f.write("second", "x\n")
	f.commit("second")
	f.issue("a")
	ran := filepath.Join(t.TempDir(), "ran")
	f.Config.Run.Publish, f.Config.Run.Gate = journal.PublishMerge, lines("git log -1 --format=%H >> "+ran)
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", r.Verdict)
	}
	tip := f.git(f.repo, "rev-parse", "main")
	if got, err := os.ReadFile(ran); !strings.HasSuffix(string(got), tip+"\n") || err != nil {
		t.Errorf("the gate ran on %q, merged was %s, %v", got, tip, err)
	}
	f.clean()
}

// Uncommitted changes of an earlier run are reported as such, also by a run that a later sweep ends.
func TestUncommittedChangesOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]bool{"at once": false, "by a later sweep": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `git log -1 --format=%s | grep -q half && { `+commits+`; exit; }; `+
				`cat >/dev/null; echo work > work; git add work; git commit -qm half; echo more > more`)
			f.issue("a")
			f.Config.Run.MaxIterations = 1
			first := f.one()
			if first.WIP == "" {
				t.Fatalf("%+v", first)
			}
			if left {
				f.Config.Run.Publish, f.Config.Run.GateOn = journal.PublishMerge, config.GateOnWorktree
				stopped, begun := filepath.Join(t.TempDir(), "stopped"), newPipe(t)
				f.Config.Run.Gate = lines(`test ! -f moved || test -f ` + stopped + ` || { echo >` + stopped + `; echo > ` + begun.path + `; exec sleep 1000; }`)
				ctx, stop := context.WithCancelCause(t.Context())
				defer stop(nil)
				begun.then(func() { stop(nil) })
				f.onStage(journal.StageVerify, func(journal.Record) {
					f.write("moved", "")
					f.commit("the base moves")
				})
				if r := f.only(f.sweep(ctx, "a")); !r.Ended.IsZero() {
					t.Fatalf("it has ended: %+v", r)
				}
				f.onStage("", nil)
			}
			r := f.one("a")
			if want := "- Uncommitted changes of run `" + first.ID + "`: saved as `" + first.WIP[:12]; !strings.Contains(f.text("a"), want) {
				t.Errorf("lacks %q: %+v\n%s", want, r.Verdict, f.text("a"))
			}
		})
	}
}

// Uncommitted changes of the agent do not keep its commits from a base that has moved: they are saved, and reported. The gate
// then sees only what is merged.
func TestUncommittedChangesHoldUpNoRebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; echo left >> README`+done)
	f.issue("a")
	saw := filepath.Join(t.TempDir(), "saw")
	f.Config.Run.Publish, f.Config.Run.Gate = journal.PublishMerge, lines("cat README >> "+saw+"; echo -- >> "+saw)
	f.onStage(journal.StageVerify, func(journal.Record) {
		f.write("elsewhere", "x\n")
		f.commit("By a person")
	})
	r := f.one()
	if r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", r.Verdict)
	}
	if got := f.git(f.repo, "show", "main:work", "main:README"); got != "work\nhello" {
		t.Errorf("merged: %s", got)
	}
	if got := f.git(f.repo, "show", r.WIP+":README"); got != "hello\nleft" {
		t.Errorf("saved: %s", got)
	}
	if got, err := os.ReadFile(saw); string(got) != "hello\n--\nhello\nleft\n--\nhello\n--\nhello\n--\n" || err != nil {
		t.Errorf("the gate saw %q, %v", got, err)
	}
	if !strings.Contains(f.text("a"), "refs/ralph/wip/a") {
		t.Errorf("nobody is told:\n%s", f.text("a"))
	}
	f.clean()
}

// If the gate passes only in the agent's worktree, because it needs uncommitted files, that is no success.
func TestGateOnACleanCheckout(t *testing.T) {
	t.Parallel()
	const work = `cat >/dev/null; echo work > work; git add work; git commit -qm work; `
	for name, script := range map[string]string{
		"untracked":        work + `echo right > new`,
		"ignored":          `cat >/dev/null; echo right > new; echo new >> .gitignore; git add .gitignore; git commit -qm work`,
		"excluded":         work + `echo new >> "$(git rev-parse --git-path info/exclude)"; echo right > new`,
		"not committed":    work + `echo right > README`,
		"staged":           work + `echo right > README; git add README`,
		"skip-worktree":    work + `git update-index --skip-worktree README; echo right > README`,
		"assume-unchanged": work + `git update-index --assume-unchanged README; echo right > README`,
		"stashed":          work + `echo right > README; git stash -q; git show stash:README > new`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, script+done)
			f.issue("a")
			f.Config.Run.Publish, f.Config.Run.Gate = journal.PublishMerge, lines("grep -q right README new")
			f.Config.Run.MaxIterations = 1
			r := f.one()
			if r.Verdict.Outcome != journal.GateFailed || r.Verdict.Reason.Code != journal.ReasonVerify || !r.Facts.GatePassed() || !r.Verdict.Counted {
				t.Errorf("%+v", r)
			}
			if n := f.git(f.repo, "rev-list", "--count", "main"); n != "1" {
				t.Error("merged all the same")
			}
			if text := f.text("a"); !strings.Contains(text, "clean checkout") {
				t.Errorf("report:\n%s", text)
			}
			f.clean()
		})
	}
}

// An agent is told which files its commits lack, and can continue.
func TestFeedbackNamesFilesThatAreNotCommitted(t *testing.T) {
	t.Parallel()
	prompts := filepath.Join(t.TempDir(), "prompt")
	f := newFixture(t, `cat >"$PROMPTS.$RALPH_ITERATION"; if [ "$RALPH_ITERATION" = 1 ]; then
echo work > work; git add work; git commit -qm work; echo right > new; echo changed > README; else git add -A; git commit -qm rest; fi`+done)
	f.issue("a")
	f.Config.Run.Env = append(os.Environ(), "PROMPTS="+prompts)
	f.Config.Run.Publish, f.Config.Run.Gate, f.Config.Run.MaxIterations = journal.PublishMerge, lines("grep -q right new"), 2
	r := f.one()
	text, err := os.ReadFile(prompts + ".2")
	if err != nil || !strings.Contains(string(text), "clean checkout") || !strings.Contains(string(text), "not committed: README, new.") {
		t.Errorf("the second prompt, %v:\n%s", err, text)
	}
	if r.Verdict.Outcome != journal.Succeeded || !r.Facts.Verify.Passed() || r.Facts.Verify.Tip != r.Tip {
		t.Errorf("%+v, %+v", r.Verdict, r.Facts.Verify)
	}
	f.clean()
}

// Nothing that the policy forbids leaves the repository in any way, and a person is told. Commits that stay on a local branch are
// merged by that person, so they are checked like the others, even after a crash.
func TestPolicyHoldsEveryWayOfPublishing(t *testing.T) {
	t.Parallel()
	for _, publish := range []journal.Publish{journal.PublishBranch, journal.PublishNone, journal.PublishMerge, "push", journal.PublishRequest} {
		for name, script := range map[string]string{
			"a protected path": evil + `git commit -qm evil`,
			"a secret":         `echo "the key is a-value-to-be-kept" > notes; git add -A; git commit -qm notes`,
		} {
			t.Run(string(publish)+", "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, "cat >/dev/null; "+script+done)
				f.issue("a")
				f.Config.Run.Publish, f.Config.Run.Secrets = publish, redact.New("a-value-to-be-kept")
				bare := ""
				host := &forge{Tracker: f.Config.Run.Tracker, requests: map[string]int{}}
				switch publish {
				case "push":
					bare = f.withRemote()
				case journal.PublishRequest:
					bare = f.withRemote()
					f.Config.Run.Publish, f.Config.Run.Tracker = publish, host
				}
				r := f.one()
				if r.Verdict.Outcome != journal.PolicyBlocked || !r.Verdict.Final || r.Commits != 1 || r.Published != "" {
					t.Errorf("%+v", r)
				}
				if text := f.text("a"); !strings.Contains(text, "needs-human") || strings.Contains(text, "git merge") {
					t.Errorf("the issue says:\n%s", text)
				}
				if got := f.git(f.repo, "rev-parse", "ralph/a"); got != r.Tip {
					t.Errorf("the branch is at %s, not %s", got, r.Tip)
				}
				if n := f.git(f.repo, "rev-list", "--count", "main"); n != "1" || len(host.requests) > 0 {
					t.Errorf("published: %s commits, requests %v", n, host.requests)
				}
				f.clean()
				if bare != "" {
					if refs := f.git(bare, "for-each-ref", "refs/heads/ralph", "refs/tags"); refs != "" {
						t.Errorf("pushed: %s", refs)
					}
					return
				}
				f.pretend("a", journal.StagePublish, func(r *journal.Record) { r.Facts.Policy = nil }) // ralph dies before its report
				f.issue("a")
				if again := f.one(); again.ID != r.ID && publish != journal.PublishMerge || again.Verdict.Outcome != journal.PolicyBlocked {
					t.Errorf("after a crash: %+v", again)
				}
			})
		}
	}
}

// A secret that ralph obtains during a run is redacted from then on, everywhere.
func TestObtainedValuesAreRedacted(t *testing.T) {
	t.Parallel()
	const value = "minted-while-the-run-is-on-4711"
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	read := "$(cat " + file + ")"
	f := newFixture(t, `cat >/dev/null; echo "it is `+read+`"; echo "it is `+read+`" >&2; echo "`+read+`" | base64 > out
git add -A; git commit -qm work`+done)
	f.issue("sly")
	f.Config.Run.Publish, f.Config.Run.Secrets = journal.PublishMerge, redact.New()
	f.Config.Run.Gate = lines("if [ -e out ]; then cat " + file + "; fi") // the base has no such file, and the value is not known yet
	f.onStage(journal.StageWork, func(journal.Record) { f.Config.Run.Secrets.Add(value) })
	r := f.one()
	if r.Verdict.Outcome != journal.PolicyBlocked {
		t.Errorf("%+v", r.Verdict)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if strings.Contains(e.Text, value) || e.Check != nil && strings.Contains(e.Check.Tail, value) {
			t.Errorf("event %+v", e)
		}
	}
	if strings.Contains(f.text("sly"), value) {
		t.Error("it is in the report")
	}
	files, err := filepath.Glob(filepath.Join(r.Dir, "*"))
	seen := 0
	for _, path := range files {
		content, readErr := os.ReadFile(path)
		if readErr != nil || strings.Contains(string(content), value) {
			t.Errorf("it is in %s, %v", filepath.Base(path), readErr)
		}
		seen += strings.Count(string(content), redact.Value)
	}
	if err != nil || seen == 0 {
		t.Errorf("redacted %d times, %v", seen, err)
	}
}

// An issue that is deleted during its run ends the run at once, however the agent ends; the commits are kept.
func TestIssueThatIsRemoved(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]string{"done": done, "failed": "; exit 3", "asks": `; echo "<needs-info>why?</needs-info><promise>COMPLETE</promise>"`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; rm -f "$RALPH_ISSUE_URL"`+end)
			f.issue("a")
			r := f.one()
			if v := r.Verdict; v.Outcome != journal.Superseded || v.Reason.Unfit.Code != tracker.UnfitGone || v.Counted || v.Final || r.Ended.IsZero() {
				t.Errorf("%+v", r)
			}
			if got := f.git(f.repo, "log", "--format=%s", "main..ralph/a"); got == "" {
				t.Error("the commits are lost")
			}
			f.clean()
			if s := f.sweep(t.Context()); len(s.Runs)+len(s.Broken)+len(s.Skipped) != 0 {
				t.Errorf("a later sweep: %+v", s)
			}
		})
	}
}

// A merge for which git would run a filter from the agent's files is left to a person at once.
func TestMergeThroughAFilter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > work.f; git add -A; git commit -qm work`+done)
	f.git(f.repo, "config", "filter.f.smudge", "cat")
	f.write(".gitattributes", "*.f filter=f\n")
	f.commit("attributes")
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	before := f.git(f.repo, "rev-parse", "main")
	r := f.one()
	if r.Verdict.Outcome != journal.PolicyBlocked || !strings.Contains(r.Verdict.Reason.Detail, "git -C "+f.repo+" merge "+r.Tip) {
		t.Errorf("%+v", r.Verdict)
	}
	if now := f.git(f.repo, "rev-parse", "main"); now != before || r.Published != "" {
		t.Errorf("main is at %s, was at %s; published %q", now, before, r.Published)
	}
	f.clean()
}

// If the merge was made before the issue was deleted, it counts.
func TestIssueThatIsRemovedAfterTheMerge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.issue("a")
	f.Config.Run.Publish = journal.PublishMerge
	f.onStage(journal.StageReport, func(journal.Record) { _ = os.Remove(filepath.Join(f.repo, ".ralph", "backlog", "a.md")) })
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded || r.Published == "" || r.Ended.IsZero() {
		t.Errorf("%+v", r)
	}
	f.clean()
}

// The commits of earlier iterations are in the run's record while the run is in progress.
func TestCommitsAreStoredWhileTheRunIsOn(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	g.Config.Run.Options.Command = []string{"sh", "-c", `cat >/dev/null; echo started; mkfifo "$GO/$RALPH_ITERATION" 2>/dev/null; read line < "$GO/$RALPH_ITERATION"
echo $RALPH_ITERATION >> work; git add -A; git commit -qm work; test $RALPH_ITERATION = 1 || echo "<promise>COMPLETE</promise>"`}
	g.issue("a")
	wait := g.begin(t.Context(), g.pool())
	for n, key := range []string{"1", "2"} {
		g.next(1)
		if r := g.runs("a")[0]; r.Commits != n || r.Stage != journal.StageWork || r.Verdict.Outcome != "" {
			t.Errorf("iteration %d: %+v", n+1, r)
		}
		g.goOn(key)
	}
	if r := g.only(wait()); r.Commits != 2 || r.Verdict.Outcome != journal.Succeeded {
		t.Errorf("%+v", r)
	}
	g.clean()
}

// The result of a clean checkout of one commit does not count for a later one.
func TestCheckoutOfEarlierCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; if test -f needed.txt; then echo b >bad; git add bad; git commit -qm second
		else echo x >needed.txt; echo w >a.txt; git add a.txt; git commit -qm first; fi`+done)
	f.Config.Run.Gate = lines("test ! -f bad || exit 7; test ! -f a.txt || test -f needed.txt")
	f.Config.Run.NoCanary, f.Config.Run.MaxIterations = true, 2
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.GateFailed || r.Facts.Verify != nil {
		t.Errorf("%+v, %+v", r.Verdict, r.Facts.Verify)
	}
	if text := f.text("a"); !strings.Contains(text, "exit status 7") || strings.Contains(text, "clean checkout of the tip") {
		t.Errorf("the report:\n%s", text)
	}
}
