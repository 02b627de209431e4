package pool_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool"
)

// Commits that stay on a local branch are merged by a person who is told to: they are looked at like those that leave.
func TestLocalBranchesAreLookedAt(t *testing.T) {
	t.Parallel()
	for _, publish := range []pool.Publish{pool.PublishBranch, pool.PublishNone} {
		for name, script := range map[string]string{
			"a protected path": evil + `git commit -qm evil`,
			"a secret":         `echo "the key is a-value-to-be-kept" > notes; git add -A; git commit -qm notes`,
		} {
			t.Run(string(publish)+", "+name, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, "cat >/dev/null; "+script+done)
				f.issue("a")
				f.Config.Publish, f.Config.Secrets = publish, pool.NewSecrets("a-value-to-be-kept")
				r := f.only(f.sweep(t.Context()))
				if r.Verdict.Outcome != pool.PolicyBlocked || !r.Verdict.Final || r.Verdict.Commits != 1 {
					t.Errorf("%+v", r.Verdict)
				}
				if text := f.text("a"); !strings.Contains(text, "needs-human") || strings.Contains(text, "git merge") {
					t.Errorf("the issue says:\n%s", text)
				}
				if got := f.git(f.repo, "rev-parse", "ralph/a"); got != r.Verdict.Tip {
					t.Errorf("the branch is at %s, not %s", got, r.Verdict.Tip)
				}
				f.clean()
				f.pretend("a", pool.StepPublish) // ralph dies before it has told
				f.put("a", "$.outcome", `'succeeded'`)
				f.issue("a")
				if again := f.only(f.sweep(t.Context())); again.Run != r.Run || again.Verdict.Outcome != pool.PolicyBlocked {
					t.Errorf("after a crash: %+v", again)
				}
			})
		}
	}
}
