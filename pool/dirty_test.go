package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// What the agent or the gate leaves uncommitted keeps no commits from a base that has moved: it is saved, and people are
// told. The gate then sees what is merged, and nothing else.
func TestUncommittedChangesHoldNoRebaseUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > work; git add -A; git commit -qm work; echo left >> README`+done)
	f.issue("a")
	saw := filepath.Join(t.TempDir(), "saw")
	f.Config.Publish, f.Config.Gate = pool.PublishMerge, lines("cat README >> "+saw+"; echo -- >> "+saw)
	moved := false
	f.onStep = func(e pool.Event) {
		if e.Step == pool.StepPublish && !moved {
			moved = true
			f.write("elsewhere", "x\n")
			f.git(f.repo, "add", "-A")
			f.git(f.repo, "commit", "-qm", "By a person")
		}
	}
	r := f.only(f.sweep(t.Context()))
	if r.Verdict.Outcome != pool.Succeeded {
		t.Fatalf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
	}
	if got := f.git(f.repo, "show", "main:work", "main:README"); got != "work\nhello" {
		t.Errorf("merged: %s", got)
	}
	if got := f.git(f.repo, "show", "refs/ralph/wip/a:README"); got != "hello\nleft" {
		t.Errorf("saved: %s", got)
	}
	if got, err := os.ReadFile(saw); string(got) != "hello\nleft\n--\nhello\n--\n" || err != nil {
		t.Errorf("the gate saw %q, %v", got, err)
	}
	if r.Verdict.WIP == "" || !strings.Contains(f.text("a"), "refs/ralph/wip/a") {
		t.Errorf("nobody is told:\n%s", f.text("a"))
	}
	f.clean()
}
