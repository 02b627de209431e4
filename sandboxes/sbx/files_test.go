package sbx_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

func TestWorkspace(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	w, err := sbx.OpenWorkspace(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for _, name := range []string{"a.txt", "deep/er/b.txt", "deep/c.md"} {
		if err := w.Put(name, []byte(name)); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Get(name); err != nil || string(got) != name {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if got, err := w.List("*.txt"); err != nil || !slices.Equal(got, []string{"a.txt", "deep/er/b.txt"}) {
		t.Errorf("List: %q, %v", got, err)
	}
	if _, err := w.List("["); err == nil {
		t.Error("List accepts a bad pattern")
	}
	if err := w.Delete("a.txt"); err != nil {
		t.Error(err)
	}

	// Neither names nor links lead out.
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link/secret", "../" + filepath.Base(outside) + "/secret", filepath.Join(outside, "secret"), "deep"} {
		if text, err := w.Get(name); err == nil {
			t.Errorf("Get(%s) gives %q", name, text)
		}
	}
	for _, name := range []string{"link/new", "../new", filepath.Join(outside, "new")} {
		if err := w.Put(name, nil); err == nil {
			t.Errorf("Put(%s) succeeds", name)
		}
	}
	if err := w.Delete("link/secret"); err == nil {
		t.Error("Delete goes through a link")
	}
	if got, err := w.List("*"); err != nil || slices.Contains(got, "link/secret") {
		t.Errorf("List: %q, %v", got, err)
	}
}
