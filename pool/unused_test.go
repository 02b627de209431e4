package pool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A run that has left nothing leaves no branch, and its report names none; the next run begins as ever.
func TestRunWithoutWorkLeavesNoBranch(t *testing.T) {
	t.Parallel()
	for outcome, agent := range map[journal.Outcome]string{
		journal.NoChange:  `echo "<no-change>it is there</no-change>"`,
		journal.NeedsInfo: `echo "<needs-info>Which colour?</needs-info>"`,
		journal.Failed:    `exit 3`,
	} {
		f := newFixture(t, `p=$(cat); case $p in *BLUE*) `+commits+`;; *) `+agent+`;; esac`)
		f.issue("a")
		if run := f.one(); run.Verdict.Outcome != outcome || len(run.Warnings) > 0 {
			t.Fatalf("%+v, %v", run.Verdict, run.Warnings)
		}
		refs := f.git(f.repo, "for-each-ref", "--format=%(refname)", "refs/heads/ralph", "refs/ralph/work")
		if text := f.text("a"); refs != "" || strings.Contains(text, "ralph/a") || !strings.Contains(text, "- Work: 0 commits on `main`\n") {
			t.Errorf("%s: refs %q\n%s", outcome, refs, text)
		}
		f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "Please do a.", "Please do a. In BLUE.", 1))
		if run := f.one("a"); run.Verdict.Outcome != journal.Succeeded || f.git(f.repo, "rev-parse", "ralph/a") != run.Tip {
			t.Errorf("after %s: %+v", outcome, run.Verdict)
		}
		f.clean()
	}
}

// A run that has lost its claim leaves its unused branch: the next run may have begun there.
func TestRunWithoutClaimLeavesTheBranch(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; echo started; exec sleep 1000`)
	bare := f.withRemote()
	f.issue("a")
	f.Config.Run.ClaimTTL = 3 * time.Second
	f.onStarted(func(string) { f.takenBy(bare, "of-another-clone") })
	if r := f.one(); r.Verdict.Reason.Code != journal.ReasonClaimLost || r.Commits > 0 || r.WIP != "" {
		t.Fatalf("%+v", r)
	}
	f.git(f.repo, "rev-parse", "--verify", "ralph/a")
}
