package link

import (
	"path/filepath"

	"github.com/ralph-pool/ralph/worktree/git"
)

// CheckFiles refuses pipes and the like in the place of files that every git command opens: files of the repository, of a
// linked worktree's git directory, and of the refs.
func CheckFiles(repo git.Location, gitDir string, refs ...string) error {
	var paths []string
	for _, dir := range []string{gitDir, repo.GitDir, repo.Common} {
		for _, name := range []string{"HEAD", "index", "config.worktree", "logs/HEAD"} {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	names := []string{"config", "packed-refs", "shallow", "info/exclude", "info/attributes", "objects/info/alternates"}
	for _, ref := range refs {
		names = append(names, ref, "logs/"+ref)
	}
	for _, name := range names {
		paths = append(paths, filepath.Join(repo.Common, filepath.FromSlash(name)))
	}
	return git.CheckRegular(paths...)
}
