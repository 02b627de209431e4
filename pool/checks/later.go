package checks

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/named"
)

// starts are files and folders of a tree that act by themselves. They are protected; what they call is not.
type starts struct {
	paths  []string
	reason string // for a person to look at what they call
	// settings means that only YAML files that they name count: CI runs nearly everything else in a project, too.
	settings bool
}

// has reports whether a file is one of the starts.
func (s starts) has(file string) bool {
	return slices.ContainsFunc(s.paths, func(start string) bool { return file == start || strings.HasPrefix(file, start+"/") })
}

// hooks are run by git, on the host, at the user's next commit.
func hooks() starts {
	return starts{reason: "a git hook runs or reads it", paths: []string{
		".husky", ".githooks", "lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml",
		".lefthook.toml", ".lefthook.json", ".config/lefthook.yml", ".config/lefthook.yaml", ".config/lefthook.toml", ".config/lefthook.json",
		".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml", ".overcommit.yml",
	}}
}

// forges are run by the forge, after a push.
func forges() starts {
	return starts{reason: "CI obeys it", settings: true, paths: []string{
		".github/workflows", ".github/actions", ".gitlab-ci.yml", ".gitlab", ".gitea/workflows", ".forgejo/workflows", ".circleci", ".travis.yml",
		".buildkite", "Jenkinsfile", "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", ".drone.yml", ".woodpecker",
		".woodpecker.yml", ".woodpecker.yaml", ".cirrus.yml", ".appveyor.yml", "appveyor.yml", ".builds", ".build.yml", "cloudbuild.yaml",
		"buildspec.yml", "buildspec.yaml", ".tekton",
	}}
}

// addLater records the changed files that git hooks and CI of the fork call: they run later, without ralph.
func (w *Watcher) addLater(ctx context.Context, g git.Runner, c changes, out *journal.Watch) error {
	if len(c.files) == 0 {
		return nil
	}
	hooks := hooks()
	files, err := named.Files(ctx, g, w.Spaces.Repo.Dir())
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Setting == "core.hookspath" {
			hooks.paths = append(hooks.paths, f.Path)
		}
	}
	root, err := g.Objects(ctx, "tree", []string{c.fork + "^{tree}"})
	if err != nil {
		return err
	}
	top := strings.Join(slices.Collect(maps.Values(root)), "")
	var all map[string]diff.Entry // read when the top folder has a start
	for _, s := range []starts{hooks, forges()} {
		if !slices.ContainsFunc(s.paths, func(start string) bool {
			first, _, _ := strings.Cut(start, "/")
			return strings.Contains(top, " "+first+"\x00")
		}) {
			continue
		}
		if all == nil {
			if all, err = diff.List(ctx, g, c.fork); err != nil {
				return err
			}
		}
		if err := addCalled(ctx, g, c, s, slices.Sorted(maps.Keys(all)), out); err != nil {
			return err
		}
	}
	return nil
}

// addCalled records the changed files that the starts among the files of the fork call.
func addCalled(ctx context.Context, g git.Runner, c changes, s starts, files []string, out *journal.Watch) error {
	var lines []string
	for _, file := range files {
		if s.has(file) {
			lines = append(lines, "sh "+git.Quote(file))
		}
	}
	counts := func(file string) bool {
		return !s.settings || slices.Contains([]string{".yml", ".yaml"}, path.Ext(file))
	}
	reads := func(file string) bool { return s.has(file) || counts(file) }
	lines, err := follow(ctx, g, c.fork, lines, false, reads)
	if err != nil || len(lines) == 0 {
		return err
	}
	reached := suite.Reached(lines)
	for _, f := range c.files {
		if file := cmp.Or(f.OldPath, f.Path); len(out.Findings) < maxListed && counts(file) && reached(file) && !s.has(file) {
			out.Findings = append(out.Findings, f.Path+": "+s.reason)
		}
	}
	return nil
}
