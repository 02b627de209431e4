package checks

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/named"
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
		all, err := follow(ctx, g, commit, w.Spaces.Before, true)
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

// hookFiles are the folders and files of a tree from which git or a tool of it runs hooks.
var hookFiles = []string{ //nolint:gochecknoglobals // read-only table
	".husky", ".githooks", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml",
	".pre-commit-config.yaml", ".overcommit.yml",
}

// addHooked records the changed files that git hooks of the fork run: they run on the host, at the user's next commit. The hooks
// themselves are protected.
func (w *Watcher) addHooked(ctx context.Context, g git.Runner, c changes, out *journal.Watch) error {
	if len(c.files) == 0 {
		return nil
	}
	hooks := hookFiles
	files, err := named.Files(ctx, g, w.Spaces.Repo.Dir())
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Setting == "core.hookspath" {
			hooks = append(slices.Clip(hooks), f.Path)
		}
	}
	root, err := g.Objects(ctx, "tree", []string{c.fork + "^{tree}"})
	if err != nil {
		return err
	}
	there := func(hook string) bool { // does the root have it, or its first folder
		top, _, _ := strings.Cut(hook, "/")
		return strings.Contains(strings.Join(slices.Collect(maps.Values(root)), ""), " "+top+"\x00")
	}
	if !slices.ContainsFunc(hooks, there) {
		return nil
	}
	all, err := diff.List(ctx, g, c.fork)
	if err != nil {
		return err
	}
	var lines []string
	for file := range all {
		if slices.ContainsFunc(hooks, func(hook string) bool { return file == hook || strings.HasPrefix(file, hook+"/") }) {
			lines = append(lines, "sh "+git.Quote(file))
		}
	}
	if lines, err = follow(ctx, g, c.fork, lines, false); err != nil {
		return err
	}
	reached := suite.Reached(lines)
	for _, f := range c.files {
		if len(out.Findings) < maxListed && reached(cmp.Or(f.OldPath, f.Path)) {
			out.Findings = append(out.Findings, f.Path+": a git hook runs or reads it")
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
