package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Whoever follows a link out of the repository reads or writes a file that no diff shows: a person merges it.
func TestLinkOutOfTheRepositoryNeedsAPerson(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		person bool
	}{
		"absolute":             {"ln -s /etc/passwd link", true},
		"above the repository": {"ln -s ../../../../root/.ssh link", true},
		"through folders":      {"mkdir -p a/b; ln -s ../../../x a/b/link", true},
		"through a link":       {"mkdir -p a/b/c d; echo >d/e; ln -s ../../../d a/b/c/l; ln -s a/b/c/l/../../x link", true},
		"git's own files":      {"ln -s .git/config link", true},
		"another target":       {"ln -sf /etc/passwd old", true},
		"inside":               {"mkdir -p a/b; ln -s ../../README a/b/link; ln -s ./README link; ln -s a folder", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; `+c.script+`; git add -A; git commit -qm link`+done)
			f.Config.Run.Publish, f.Config.Run.MaxIterations = journal.PublishMerge, 1
			if err := os.Symlink("/etc/hosts", filepath.Join(f.repo, "old")); err != nil {
				t.Fatal(err)
			}
			f.commit("a link")
			f.issue("a")
			r := f.one()
			if r.Verdict.Outcome != journal.Succeeded || r.Verdict.Unattended() == c.person ||
				strings.Contains(f.text("a"), "is a link that may lead out of the repository") != c.person {
				t.Errorf("%+v\n%s", r.Verdict, f.text("a"))
			}
		})
	}
}
