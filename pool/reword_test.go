package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// The messages of an agent's commits go out without force. What was gated is what is published: the tip is one commit
// all the way.
func TestMessagesGoOutWithoutForce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo work > out; git add -A; git commit -qm "Fixes #2, thanks @team [skip ci]"
echo "<promise>COMPLETE</promise>"`)
	f.issue("one")
	ran := filepath.Join(t.TempDir(), "ran")
	f.Config.Publish, f.Config.Gate = pool.PublishMerge, lines("git log -1 --format=%H >> "+ran)
	r := f.only(f.sweep(t.Context()))
	if r.Verdict.Outcome != pool.Succeeded {
		t.Fatalf("outcome %s: %s", r.Verdict.Outcome, r.Verdict.Reason)
	}
	if log := f.git(f.repo, "log", "--format=%s", "main"); !strings.HasPrefix(log, "Fixes # 2, thanks @ team [ skip ci]\n") {
		t.Errorf("merged: %s", log)
	}
	if got, err := os.ReadFile(ran); string(got) != r.Verdict.Tip+"\n" || err != nil {
		t.Errorf("the gate ran on %q, published was %s, %v", got, r.Verdict.Tip, err)
	}
	f.clean()
}
