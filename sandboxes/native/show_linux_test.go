package native_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// The paths of Show are usable inside, although the init process of root's sandbox is another user on the host, without
// access to their parent folders.
func TestShownBelowAClosedFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	for name, mode := range map[string]os.FileMode{"open": 0o755, "own": 0o700} {
		tools := filepath.Join(closed, name)
		if err := os.MkdirAll(tools, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tools, "tool"), []byte("#!/bin/sh\necho "+name+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tools, "secret"), []byte("secret of "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(tools, mode); err != nil {
			t.Fatal(err)
		}
	}
	worktree := filepath.Join(dir, "worktree")
	if err := os.Mkdir(worktree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(closed, "open", "tool")
	for _, show := range [][]string{{filepath.Join(closed, "open"), filepath.Join(closed, "own")}, {file}} {
		box, err := native.New(native.Config{Show: show}).Open(t.Context(), sandboxes.Spec{Run: "show-" + dir, Worktree: worktree})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{"sh", "-c", `
			for path; do
				if test -d "$path"; then "$path/tool"; else "$path"; fi || exit 1
				! touch "$path/no" 2>/dev/null || exit 1
			done`, "sh", show[0], show[len(show)-1]}})
		if err != nil || !exit.OK() {
			t.Errorf("%+v, %v, %s", exit, err, &out)
		}
		// Files of root that others cannot read stay unreadable in a folder that others can read.
		exit, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{"cat", filepath.Join(closed, "open", "secret")}})
		if err != nil || exit.OK() && (os.Getuid() == 0 || show[0] == file) {
			t.Errorf("the secret is read: %+v, %v", exit, err)
		}
		if err := box.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
