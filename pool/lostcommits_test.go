package pool_test

import (
	"strings"
	"testing"
)

// A merge of a branch that has lost its commits says how to bring them back, unless the base has them.
func TestMergeNamesLostCommits(t *testing.T) {
	t.Parallel()
	for name, base := range map[string]bool{"nowhere else": false, "in the base": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work > a.txt; git add a.txt; git commit -qm work; echo more > b.txt`+done)
			f.withRemote()
			f.issue("a")
			run := f.one()
			if base {
				f.git(f.repo, "merge", "-q", "--squash", "ralph/a")
				f.commit("squashed")
			}
			f.git(f.repo, "branch", "-qf", "ralph/a", "main")
			r, err := f.pool().Merge(t.Context(), "a")
			if got := strings.Contains(r.Record.Verdict.Reason.Detail, "git branch -f ralph/a "+run.Tip[:12]); got == base {
				t.Errorf("%+v, %v", r.Record.Verdict, err)
			}
		})
	}
}
