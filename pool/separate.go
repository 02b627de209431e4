package pool

import (
	"context"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// separate keeps a sandbox away from the user's repository: it gets a private one to work in, and what it needs to read
// of the user's objects; one that gets copies gets these as a pack. A sandbox in place works in the worktree's own git directory, and has to be asked for by name.
func separate(ctx context.Context, p sandboxes.Provider, tree *worktree.Tree, spec *sandboxes.Spec) error {
	files := p.Capabilities().Files
	switch {
	case tree == nil: // the checkout itself; only for sandboxes in place
		return nil
	case files == sandboxes.InPlace:
		return tree.DropPrivate(ctx)
	}
	repo, err := tree.Private(ctx)
	if err != nil {
		return err
	}
	spec.GitDir = repo.Dir
	if files == sandboxes.Copy {
		spec.Pack, err = tree.Pack(ctx)
		return err
	}
	spec.Objects = repo.Objects
	return nil
}

// leftInside says what of a sandbox's files has not come back.
func leftInside(box sandboxes.Sandbox) []string {
	if left := sandboxes.LeftIn(box); left != "" {
		return []string{"sandbox: " + left}
	}
	return nil
}
