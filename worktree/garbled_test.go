package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// A ref of ralph's without a valid commit name, such as an empty file after a power loss, does not block its key.
func TestGarbledRefs(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"refs/ralph/work/k": "", "refs/ralph/wip/k": "garbage\n", "refs/heads/ralph/k": "\x00\x00\x00", "refs/ralph/old/k/0123456789ab": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			other := filepath.Join(f.dir, ".git", "refs/ralph/work/k2") // a ref of another issue
			path := filepath.Join(f.dir, ".git", filepath.FromSlash(name))
			for _, p := range []string{path, other} {
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f.imported(f.workIn("k", "r1", false, "echo x >done; git add done; git commit -qm work; echo y >draft"))
			if _, err := os.Stat(other); err != nil {
				t.Error(err)
			}
		})
	}
}
