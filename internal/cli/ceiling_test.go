package cli

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// As git does, ralph looks for a repository in no folder above those in GIT_CEILING_DIRECTORIES.
func TestCeilingOfTheSearch(t *testing.T) {
	m := newMachine(t)
	m.write(t, "a/b/file", "")
	m.commit(t)
	t.Setenv("GIT_CEILING_DIRECTORIES", m.repo+"/a")
	got := m.run(t, nil, "init", "--yes", "--repo="+m.repo+"/a/b")
	if got.status != exit.Usage || !strings.Contains(got.stderr, "not a git repository") && !strings.Contains(got.stderr, "no repository") {
		t.Errorf("%+v", got)
	}
}
