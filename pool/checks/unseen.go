package checks

import (
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
)

// GitlinkWhy says why a person has to look at a changed submodule.
const GitlinkWhy = "is a commit of another repository, whose changes no diff shows"

// Gitlinks lists the paths at which the changes add a submodule, or another commit of one.
func Gitlinks(files []diff.File) (paths []string) {
	for _, f := range files {
		if f.New.Mode == diff.Gitlink {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// addGitlinks records changed submodules: what their commits run is in no diff, and perhaps on no remote.
func addGitlinks(files []diff.File, out *journal.Watch) {
	for _, path := range Gitlinks(files) {
		if len(out.Findings) < maxListed {
			out.Findings = append(out.Findings, path+": "+GitlinkWhy)
		}
	}
}
