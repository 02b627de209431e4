package checks

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// addOnHost records the changed files that the user's host commands run or read. These commands see only the base, but after a
// merge that is what an agent has written, so a person has to look first. Without a gate, build files count, too: package managers
// read them, and compare does not list them.
func (w *Watcher) addOnHost(ctx context.Context, g git.Runner, c changes, tip string, gated bool, out *journal.Watch) error {
	if len(w.Spaces.Before) == 0 || len(c.files) == 0 {
		return nil
	}
	var lines []string
	for _, commit := range []string{c.fork, tip} { // a script of the fork may read a file that only the tip has
		all, err := follow(ctx, g, commit, w.Spaces.Before, true, nil)
		if err != nil {
			return err
		}
		lines = append(lines, all...)
	}
	reached := suite.Reached(lines)
	counts := func(file string) bool {
		role, _ := suite.RoleOf(file, nil)
		return reached(file) || !gated && role == ecosystem.Build
	}
	for _, f := range c.files {
		if len(out.Findings) < maxListed && slices.ContainsFunc([]string{f.Path, cmp.Or(f.OldPath, f.Path)}, counts) {
			out.Findings = append(out.Findings, f.Path+": a command on the host runs or reads it")
		}
	}
	return nil
}

// addFolders adds to the files of a commit their folders, as entries without content.
func addFolders(files map[string]diff.Entry) {
	for _, file := range slices.Collect(maps.Keys(files)) {
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
			if _, known := files[folder]; known {
				break
			}
			files[folder] = diff.Entry{}
		}
	}
}
