package pool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Commands of `after` see the run's files whatever its outcome, and change nothing that is published.
func TestAfter(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo 1 >> work; git add -A; git commit -qm work; echo loose > loose`+done)
	seen := filepath.Join(t.TempDir(), "seen")
	f.Config.Run.Env = append(os.Environ(), "SEEN="+seen)
	f.Config.Run.Gate, f.Config.Run.MaxIterations = lines(`test ! -f work || test "$(cat work | wc -l)" = 2`), 1
	f.Config.Run.After = lines("echo late > work; git commit -qam late; exit 3", `cat loose work >> "$SEEN"; echo "$RALPH_ISSUE_KEY" >> "$SEEN"`)
	f.issue("a")
	for n, want := range []journal.Outcome{journal.GateFailed, journal.Succeeded} {
		r := f.one("a")
		if r.Verdict.Outcome != want || r.Commits != n+1 {
			t.Fatalf("%+v, %d commits\n%s\n%s", r.Verdict, r.Commits, f.git(f.repo, "log", "--stat", "--oneline", "ralph/a"), f.git(f.repo, "for-each-ref"))
		}
		if got := fmt.Sprint(r.Warnings); !strings.Contains(got, "after `echo late") || !strings.Contains(got, "exit status 3") || !strings.Contains(got, "ralph moved it back") {
			t.Errorf("warnings %q", got)
		}
		if _, err := os.Stat(filepath.Join(r.Dir, "after-2.log")); err != nil {
			t.Error(err)
		}
	}
	if got := f.git(f.repo, "show", "ralph/a:work"); got != "1\n1" {
		t.Errorf("work is %q", got)
	}
	if got, err := os.ReadFile(seen); err != nil || string(got) != "loose\nlate\na\nloose\nlate\na\n" {
		t.Errorf("seen %q, %v", got, err)
	}
	f.clean()
}

// At a stop the commands of `after` have the same grace period as an agent.
func TestAfterStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t, endless)
	f.Config.Run.After, f.Config.Run.StopGrace = lines("exec sleep 1000", "true"), time.Second
	f.issue("a")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	f.onStarted(func(string) { stop(nil) })
	s, err := f.pool().Sweep(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := f.only(s)
	if r.Verdict.Outcome != journal.Interrupted || r.Commits != 1 {
		t.Errorf("%+v", r)
	}
	if got := fmt.Sprint(r.Warnings); !strings.Contains(got, "after `exec sleep 1000`: ") || strings.Contains(got, "gate") {
		t.Errorf("warnings %s", got)
	}
	f.clean()
}

// Files and commits that the commands of `after` leave in the worktree get into no merge, even after the base has moved.
func TestAfterAndMerge(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{"on the branch": "true", "on another": "git switch -q -c results", "on none": "git switch -q --detach"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work`+done)
			f.Config.Run.Publish = journal.PublishMerge
			f.Config.Run.After = lines(at + "; echo late > work; git commit -qam late; echo later >> README; echo new > new; git add new")
			f.issue("a")
			f.onStage(journal.StageVerify, func(journal.Record) {
				f.write("elsewhere", "x\n")
				f.commit("By a person")
			})
			if r := f.one(); r.Verdict.Outcome != journal.Succeeded || r.Commits != 1 {
				t.Fatalf("%+v, %d commits, %q", r.Verdict, r.Commits, r.Warnings)
			}
			if got := f.git(f.repo, "show", "main:work", "main:README"); got != "work\nhello" {
				t.Errorf("merged: %s", got)
			}
			if got := f.git(f.repo, "ls-tree", "--name-only", "main"); strings.Contains(got, "new") {
				t.Errorf("merged: %s", got)
			}
			f.clean()
		})
	}
}
