package git

import (
	"bytes"
	"context"
	"path/filepath"
)

// HidesChanges reports that the index tells git not to look at files (assume-unchanged, skip-worktree): Status does not see how they
// have changed. In a sparse checkout it always does.
func (g Runner) HidesChanges(ctx context.Context) (hides bool, err error) {
	err = g.Lines(ctx, func(line []byte) { hides = hides || unseen(string(line)) }, "ls-files", "-v")
	return hides, err
}

// unseen reports that a line of `ls-files -v` is of a file that git is not to look at.
func unseen(line string) bool { return line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' }

// MayHaveGitlinks reports whether the index of a git directory may name a commit of another repository.
func MayHaveGitlinks(gitDir string) bool {
	index, _, err := ReadRegular(filepath.Join(gitDir, "index"))
	// The mode of such an entry, and the extensions that say that entries are in another file, or stand for a folder.
	return err != nil || bytes.Contains(index, []byte{
		0, 0, 0xe0, 0,
	}) || bytes.Contains(index, []byte("link")) || bytes.Contains(index, []byte("sdir"))
}
