package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Comparing commits does not need the index, which may be large or damaged. Errors of other commands say how to make it
// anew.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"short": "garbage\n", "long": strings.Repeat("garbage\n", 20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			index := filepath.Join(r.dir, ".git", "index")
			if err := os.WriteFile(index, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := r.Output(t.Context(), "diff-tree", "-r", "--root", "--name-only", "--no-commit-id", "HEAD"); err != nil {
				t.Errorf("%s, %v", out, err)
			}
			_, _, err := r.Status(t.Context())
			if want := "; rebuild the index with: rm " + index + " && git -C " + r.dir + " reset"; err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			if _, err := r.Output(t.Context(), "ls-files", "diff-tree"); err == nil {
				t.Error("a name is taken for the command")
			}
			if _, err := r.With("GIT_INDEX_FILE="+index).Output(t.Context(), "ls-files"); err == nil || strings.Contains(err.Error(), "rm ") {
				t.Errorf("another index: %v", err)
			}
		})
	}
}

func TestDamagedPackedRefs(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"garbage\n", "# pack-refs with: peeled\n1234"} {
		r := newRepo(t)
		if err := os.WriteFile(filepath.Join(r.dir, ".git", "packed-refs"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := r.Output(t.Context(), "ls-tree", "HEAD")
		if err == nil || !strings.HasSuffix(err.Error(), " (delete this line from the file)") {
			t.Error(err)
		}
	}
}
