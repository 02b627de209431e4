package git

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
)

// HidesChanges reports that the index tells git not to look at files (assume-unchanged, skip-worktree): Status does not see
// how they have changed. In a sparse checkout it always does.
func (g Runner) HidesChanges(ctx context.Context) (bool, error) {
	out, err := g.Out(ctx, "ls-files", "-v")
	for line := range strings.Lines(out) {
		if line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' {
			return true, err
		}
	}
	return false, err
}

// MayHaveGitlinks reports whether the index of a git directory may name a commit of another repository.
func MayHaveGitlinks(gitDir string) bool {
	index, _, err := ReadRegular(filepath.Join(gitDir, "index"))
	// The mode of such an entry, and the extension that says that entries are in another file.
	return err != nil || bytes.Contains(index, []byte{0, 0, 0xe0, 0}) || bytes.Contains(index, []byte("link"))
}
