package pool

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// separate keeps a sandbox away from the user's repository: it gets a private one to work in, and what it needs to read
// of the user's objects. A sandbox in place works in the worktree's own git directory, and has to be asked for by name.
func separate(ctx context.Context, p sandboxes.Provider, tree *worktree.Tree, spec *sandboxes.Spec) error {
	files := p.Capabilities().Files
	switch {
	case tree == nil: // the checkout itself; only for sandboxes in place
		return nil
	case files == sandboxes.InPlace:
		return tree.DropPrivate(ctx)
	case files != sandboxes.Bind:
		return fmt.Errorf("sandbox %s: worktrees that are copied (%s): %w; choose another with --sandbox", p.Name(), files, sandboxes.ErrUnsupported)
	}
	repo, err := tree.Private(ctx)
	if err != nil {
		return err
	}
	spec.GitDir, spec.Objects = repo.Dir, repo.Objects
	return nil
}
