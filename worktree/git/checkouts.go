package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Checkout is a worktree that git has a record of, the user's or ralph's.
type Checkout struct {
	Dir    string
	Branch string // full ref; empty when detached
	Reason string // reason of its lock
}

// Checkouts lists the worktrees of the repository, the main one first.
func (g Runner) Checkouts(ctx context.Context) ([]Checkout, error) {
	out, err := g.Out(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	return parseCheckouts(out), nil
}

// parseCheckouts parses the output of `git worktree list --porcelain -z`.
func parseCheckouts(out string) []Checkout {
	var all []Checkout
	for field := range strings.SplitSeq(out, "\x00") {
		name, value, _ := strings.Cut(field, " ")
		switch {
		case name == "worktree":
			all = append(all, Checkout{Dir: value})
		case len(all) == 0:
		case name == "branch":
			all[len(all)-1].Branch = value
		case name == "locked":
			all[len(all)-1].Reason = value
		}
	}
	return all
}

// GitDirOf finds the git directory of a checkout in the repository's own records, without reading files in the checkout.
func (g Runner) GitDirOf(dir string) (string, error) {
	links, err := filepath.Glob(filepath.Join(escapeGlob(g.common), "worktrees", "*", "gitdir"))
	if err != nil {
		return "", err
	}
	for _, link := range links {
		content, err := ReadLinked(link)
		if err == nil && strings.TrimSuffix(string(content), "\n") == filepath.Join(dir, ".git") {
			return filepath.Dir(link), nil
		}
	}
	if filepath.Join(dir, ".git") == g.common {
		return g.common, nil
	}
	return "", fmt.Errorf("the git directory of the checkout %s is not known; check: git worktree list", dir)
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// LockReason is the prefix of the lock reason of ralph's linked worktrees; it distinguishes them from the user's.
const LockReason = "ralph run "

// UserCheckouts returns the tops of the user's checkouts. It reads git's records, because git fails at an incomplete one.
func (g Runner) UserCheckouts() (tops []string) {
	if filepath.Base(g.common) == ".git" {
		tops = append(tops, filepath.Dir(g.common))
	}
	links, _ := filepath.Glob(filepath.Join(escapeGlob(g.common), "worktrees", "*", "gitdir")) // the pattern is valid
	for _, link := range links {
		locked, _ := ReadLinked(filepath.Join(filepath.Dir(link), "locked")) // most are not locked
		file, err := ReadLinked(link)
		top := filepath.Dir(strings.TrimSuffix(string(file), "\n"))
		if err == nil && filepath.IsAbs(top) && !strings.HasPrefix(string(locked), LockReason) {
			tops = append(tops, top)
		}
	}
	return tops
}

// Resolved resolves the symbolic links in a path. Its last elements need not exist.
func Resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	last := strings.LastIndexByte(path, '/')
	if last <= 0 {
		return path
	}
	return filepath.Join(Resolved(path[:last]), path[last+1:])
}
