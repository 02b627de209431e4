// Package index reads facts from the index of a checkout that git status does not show. Its caller is package worktree.
package index

import (
	"bytes"
	"context"
	"path/filepath"

	"github.com/ralph-pool/ralph/worktree/git"
)

// HidesChanges reports whether the index tells git to ignore changes of files (assume-unchanged, skip-worktree), which git
// status then does not show. In a sparse checkout it always does. g is pinned to the checkout.
func HidesChanges(ctx context.Context, g git.Runner) (hides bool, err error) {
	err = g.Lines(ctx, func(line []byte) { hides = hides || line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' }, "ls-files", "-v")
	return hides, err
}

// MayHaveGitlinks reports whether the index of a git directory may contain a commit of another repository.
func MayHaveGitlinks(gitDir string) bool {
	index, _, err := git.ReadRegular(filepath.Join(gitDir, "index"))
	// The mode of such an entry, and the extensions for entries in another file (link) or entries that stand for a folder
	// (sdir).
	return err != nil || bytes.Contains(index, []byte{
		0, 0, 0xe0, 0,
	}) || bytes.Contains(index, []byte("link")) || bytes.Contains(index, []byte("sdir"))
}
