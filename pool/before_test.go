package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Host commands never run anything that an agent has committed, in any attempt. A run and its checks get the files that they
// make.
func TestHostCommandsSeeTheBaseOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo "echo agent >> $MARK" > deps.sh; echo "$RALPH_ATTEMPT" > work; git add -A; git commit -qm work`+done)
	mark := filepath.Join(t.TempDir(), "mark")
	f.write("deps.sh", `mkdir -p deps/bin; ln -s /nowhere deps/bin/tool; echo made > deps/lib; echo changed > README; echo base >> "$MARK"`)
	f.write(".gitignore", ".ralph/\ndeps/\n")
	f.commit("deps")
	f.Config.Run.Env = append(os.Environ(), "MARK="+mark)
	f.Config.Run.Before = []string{"MARK=" + mark + " sh deps.sh"}
	f.Config.Run.Gate = lines("test -f deps/lib && test -L deps/bin/tool", `test ! -f work || test "$(cat work)" = 2`)
	f.Config.Run.MaxIterations = 1
	f.issue("a")
	if r := f.one("a"); r.Verdict.Outcome != journal.GateFailed {
		t.Fatalf("%+v", r.Verdict)
	}
	r := f.one("a")
	if r.Verdict.Outcome != journal.Succeeded || r.Facts.Verify == nil || !r.Facts.Verify.Passed() || r.Attempt != 2 {
		t.Fatalf("%+v, verify %+v", r.Verdict, r.Facts.Verify)
	}
	if got, err := os.ReadFile(mark); err != nil || strings.Contains(string(got), "agent") || strings.Count(string(got), "base") != 3 {
		t.Errorf("on the host ran %q, %v", got, err) // before the gate on the base, and in each run
	}
	if got := f.git(f.repo, "show", "ralph/a:README"); got != "hello" {
		t.Errorf("README is %q", got)
	}
	f.clean()
}

// A run does not continue from commits that violate the policy, even if they were never to be published.
func TestPolicyBeforeARunGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; mkdir -p .github/workflows; echo evil > .github/workflows/evil.yml; git add -A; git commit -qm work`+done)
	f.Config.Run.Protected = []string{".github/**"}
	f.Config.Run.Gate = lines("test -f never")
	f.Config.Run.MaxIterations = 1
	f.issue("a")
	if r := f.one("a"); r.Verdict.Outcome != journal.GateFailed {
		t.Fatalf("%+v", r.Verdict)
	}
	f.onStarted(func(string) { t.Error("an agent is started") })
	r := f.one("a")
	if r.Verdict.Outcome != journal.PolicyBlocked || len(r.Facts.Iterations) > 0 {
		t.Errorf("%+v, %d iterations", r.Verdict, len(r.Facts.Iterations))
	}
}

// The failure of a host command has the line that states the cause, which is not always the last one.
func TestFailureOfAHostCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Run.Before = []string{"echo \"fatal: transport 'file' not allowed\"; echo 'Failed to clone a second time, aborting'; exit 1"}
	f.issue("a")
	if r := f.one(); !strings.Contains(r.Verdict.Reason.Detail, "exit status 1: fatal: transport 'file' not allowed") {
		t.Errorf("%+v", r.Verdict)
	}
}
