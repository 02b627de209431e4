// Package index says what the index of a checkout has besides what git status shows. Package worktree calls it.
package index

import (
	"bytes"
	"context"
	"path/filepath"

	"github.com/ralph-pool/ralph/worktree/git"
)

// HidesChanges reports that the index tells git not to look at files (assume-unchanged, skip-worktree): git status does not see how
// they have changed. In a sparse checkout it always does. g is pinned to the checkout.
func HidesChanges(ctx context.Context, g git.Runner) (hides bool, err error) {
	err = g.Lines(ctx, func(line []byte) { hides = hides || git.Unseen(string(line)) }, "ls-files", "-v")
	return hides, err
}

// MayHaveGitlinks reports whether the index of a git directory may name a commit of another repository.
func MayHaveGitlinks(gitDir string) bool {
	index, _, err := git.ReadRegular(filepath.Join(gitDir, "index"))
	// The mode of such an entry, and the extensions that say that entries are in another file, or stand for a folder.
	return err != nil || bytes.Contains(index, []byte{
		0, 0, 0xe0, 0,
	}) || bytes.Contains(index, []byte("link")) || bytes.Contains(index, []byte("sdir"))
}
