package sbx_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// A session with a microVM: files go in and out, and no link that leads out is followed.
func TestSession(t *testing.T) {
	t.Parallel()
	p, shim := withShim(t, nil)
	top := t.TempDir()
	if err := os.WriteFile(filepath.Join(top, "secret"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := session.Prepare(t.Context(), session.Config{
		Provider: p, Spec: sandboxes.Spec{Worktree: filepath.Join(top, "work")}, Outputs: []string{"*.txt"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Workspace.PutFile("in", "hello\n"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "tr a-z A-Z <in >out.txt; ln -s ../secret link; exit 3"}})
	if err != nil || got.Exit.Code != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if text, err := s.Workspace.GetFile("link"); err == nil {
		t.Errorf("a link leads out of the workspace, to %q", text)
	}
	artefacts, err := s.Collect(t.Context())
	if err != nil || len(artefacts.Files) != 1 || string(artefacts.Files[0].Content) != "HELLO\n" {
		t.Errorf("collected %+v, %v", artefacts.Files, err)
	}
	if err := s.Cleanup(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(shim.path("boxes")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
