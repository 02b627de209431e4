package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/worktree/diff"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got, err := diff.Links(t.Context(), f.repo.Git(), "HEAD", f.dir); err != nil || len(got) != 0 {
		t.Fatalf("%v, %v", got, err)
	}
	f.write(f.dir, "d/e/x", "x\n")
	for name, to := range map[string]string{"d/e/top": "../..", "d/here": "./e//x", "out": "..", "root": "/etc", "in": f.dir + "/d/../x", "gone": "d/none", "gone2": "d/none"} {
		if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.git("add", ".")
	f.git("commit", "-qm", "Links")
	got, err := diff.Links(t.Context(), f.repo.Git(), f.git("rev-parse", "HEAD"), f.dir)
	want := map[string]string{"d/e/top": "../..", "d/here": "./e//x", "out": "..", "in": "/d/../x/", "gone": "d/none", "gone2": "d/none"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
