package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got, err := f.repo.Links(t.Context(), "HEAD"); err != nil || len(got) != 0 {
		t.Fatalf("%v, %v", got, err)
	}
	f.write(f.dir, "d/e/x", "x\n")
	for name, to := range map[string]string{"d/e/top": "../..", "d/here": "./e//x", "out": "..", "d/out": "../../..x", "root": "/etc", "gone": "d/none", "gone2": "d/none"} {
		if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.git("add", ".")
	f.git("commit", "-qm", "Links")
	got, err := f.repo.Links(t.Context(), f.git("rev-parse", "HEAD"))
	want := map[string]string{"d/e/top": ".", "d/here": "d/e/x", "gone": "d/none", "gone2": "d/none"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}
