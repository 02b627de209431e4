package pool_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A submodule's commit is a change like others, even if the user's settings leave submodules out of diffs.
func TestSubmoduleThatIsNotMerged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `git update-index --cacheinfo "160000,$(git rev-parse HEAD),sub"; git commit -qm sub`+done)
	f.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n")
	f.commit("sub")
	f.git(f.repo, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
	f.git(f.repo, "commit", "-qm", "sub")
	f.issue("a")
	if r := f.one(); r.Verdict.Outcome != journal.Succeeded {
		t.Fatalf("%+v", r)
	}
	f.git(f.repo, "config", "diff.ignoreSubmodules", "all")
	if plan, err := f.pool().Preview(t.Context()); err != nil || len(plan.Merged) != 0 {
		t.Errorf("merged is %+v, %v", plan.Merged, err)
	}
}

// A submodule's commit stands for files that no diff shows: a person merges it, whatever hides it from git's own diffs.
func TestSubmoduleNeedsAPerson(t *testing.T) {
	t.Parallel()
	const modules = "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = all\n"
	for name, c := range map[string]struct {
		script string
		before bool // the base has the submodule
	}{
		"another commit": {`git update-index --cacheinfo "160000,$(git rev-parse HEAD),sub"`, true},
		"a new one":      {`git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),sub"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work >work; git add work; `+c.script+`; git commit -qm sub`+done)
			f.Config.Run.Publish, f.Config.Run.MaxIterations = journal.PublishMerge, 1
			f.write(".gitmodules", modules)
			f.commit("modules")
			if c.before {
				f.git(f.repo, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",sub")
				f.git(f.repo, "commit", "-qm", "sub")
			}
			f.git(f.repo, "config", "diff.ignoreSubmodules", "all")
			f.issue("a")
			r := f.one()
			if r.Verdict.Unattended() || f.exists("work") || !strings.Contains(f.text("a"), "sub: is a commit of another repository") {
				t.Errorf("%+v\n%s", r.Verdict, f.text("a"))
			}
		})
	}
}
