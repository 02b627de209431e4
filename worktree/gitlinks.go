package worktree

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"crypto/rand"
)

// Gitlinks lists the paths where base..tip brings a repository inside the repository that no .gitmodules names: git has
// recorded its commit, and none of its files.
func (r *Repo) Gitlinks(ctx context.Context, base, tip string) ([]string, error) {
	out, err := r.git.out(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", "--end-of-options", base, tip, "--")
	if err != nil {
		return nil, fmt.Errorf("look for nested repositories: %w", err)
	}
	fields := strings.Split(out, "\x00")
	var links []string
	for i := 0; i+1 < len(fields); i += 2 {
		if parts := strings.Fields(fields[i]); len(parts) > 1 && parts[1] == "160000" {
			links = append(links, fields[i+1])
		}
	}
	if len(links) == 0 {
		return nil, nil
	}
	named, err := r.submodules(ctx, tip)
	if err != nil {
		return nil, err
	}
	var unnamed []string
	for _, l := range links {
		if !named[l] {
			unnamed = append(unnamed, l)
		}
	}
	return unnamed, nil
}

// submodules are the paths that the commit's .gitmodules names. One that cannot be read names none.
func (r *Repo) submodules(ctx context.Context, commit string) (map[string]bool, error) {
	here, err := r.git.yes(ctx, "cat-file", "-e", commit+":.gitmodules")
	if err != nil || !here {
		return nil, ctx.Err() // without the file the command fails
	}
	out, err := r.git.out(ctx, "config", "--blob", commit+":.gitmodules", "-z", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil {
		return nil, ctx.Err() // see above
	}
	named := map[string]bool{}
	for record := range strings.SplitSeq(out, "\x00") {
		if _, value, ok := strings.Cut(record, "\n"); ok {
			named[value] = true
		}
	}
	return named, nil
}

// Rescue moves nested repositories out of the worktree into a folder that ralph never deletes, and returns it: their
// files are in no commit of the branch. Paths that lead out of the worktree are refused.
func (t *Tree) Rescue(paths []string) (string, error) {
	to := t.repo.path("kept", t.name)
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return "", fmt.Errorf("rescue nested repositories: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, p := range paths {
		if info, err := root.Lstat(p); err != nil || !info.IsDir() {
			continue
		}
		goal := filepath.Join(to, filepath.FromSlash(path.Clean("/"+p)))
		if err := os.MkdirAll(filepath.Dir(goal), 0o700); err != nil {
			return "", fmt.Errorf("rescue nested repositories: %w", err)
		}
		passing := ".ralph-" + rand.Text()
		if err := root.Rename(p, passing); err != nil {
			return "", fmt.Errorf("rescue nested repositories: %w", err)
		}
		if err := root.Mkdir(p, 0o755); err != nil { // a missing folder would be a change
			return "", fmt.Errorf("rescue nested repositories: %w", err)
		}
		if err := os.Rename(filepath.Join(t.Dir(), passing), goal); err != nil {
			return "", fmt.Errorf("rescue nested repositories: %w", err)
		}
	}
	return to, nil
}
