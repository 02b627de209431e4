package workspace

import (
	"context"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// keeping is a sandbox with a disk of its own.
type keeping struct{ sandboxes.Sandbox }

func (keeping) KeepDisk() string { return "show it" }

// Work that cannot be imported is set aside: one line names the removed folder, the new folder, and the command that shows the
// sandbox's disk, each once.
func TestCloseSetsAside(t *testing.T) {
	t.Parallel()
	repo, base := committed(t, worktree.Options{}, "a")
	tree, err := repo.Add(t.Context(), worktree.Spec{Run: "r", Key: "k", Branch: "ralph/k", Base: base, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Sandbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	box, err := spaced{sandboxes.NewNone(sandboxes.NoneConfig{})}.Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: tree.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	late := func(context.Context, worktree.Command) (int, error) { return 0, worktree.ErrLate }
	_, err = tree.Import(t.Context(), late)
	c := &Config{Repo: repo, Sandboxes: spaced{sandboxes.NewNone(sandboxes.NoneConfig{})}}
	w := &Workspace{c: c, id: "r", Tree: tree, Dir: tree.Dir(), importGivenUp: err, Sandbox: keeping{box}, Meter: gateway.NewMeter(gateway.Network{}, "r")}
	told := w.Close(t.Context(), false)
	if len(told) != 1 {
		t.Fatalf("told %q", told)
	}
	for _, dir := range []string{tree.Dir(), "/kept/", "show it"} {
		if text := told[0].Text; strings.Count(text, dir) != 1 || !strings.Contains(text, worktree.ErrLate.Error()) {
			t.Errorf("%s is not named once: %s", dir, text)
		}
	}
}
