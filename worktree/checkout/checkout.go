// Package checkout lists the checkouts of a repository, and the branches that each of them has. Its callers are package
// worktree and worktree/merge.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/operation"
)

// Checkout is a worktree that git has a record of, the user's or ralph's.
type Checkout struct {
	Dir    string
	GitDir string // from the repository's own records; empty if they do not have it
	Branch string // full ref; empty when detached
	Reason string // reason of its lock
	// Begun has the branches, by full ref, that an unfinished rebase or bisection will move or check out again. HEAD is detached
	// meanwhile, and git's list does not show them.
	Begun map[string]operation.Operation
}

// Has reports whether the checkout has the branch. As git does, ralph then moves the branch only together with the checkout.
func (c Checkout) Has(ref string) bool { return c.Branch == ref || c.Begun[ref] != "" }

// HeldError means that a checkout has a branch, so that ralph leaves the branch where it is.
type HeldError struct {
	Branch, Dir string
	Operation   operation.Operation // what has begun there; empty: the branch is checked out
}

// Held returns the error for a branch that the checkout has.
func (c Checkout) Held(ref string) *HeldError {
	return &HeldError{Branch: git.DisplayName(ref), Dir: c.Dir, Operation: c.Begun[ref]}
}

func (e *HeldError) Error() string {
	if e.Operation == "" {
		return fmt.Sprintf("branch %s is checked out in %s; free it with: git -C %s switch --detach", e.Branch, e.Dir, git.Quote(e.Dir))
	}
	return fmt.Sprintf("a %s of branch %s is in progress in %s; end it with: %s", e.Operation, e.Branch, e.Dir, e.Operation.End())
}

// Unwrap returns operation.ErrUnfinished for an operation.
func (e *HeldError) Unwrap() error {
	if e.Operation == "" {
		return nil
	}
	return operation.ErrUnfinished
}

// List lists the checkouts of the repository, the main one first.
func List(ctx context.Context, g git.Runner) ([]Checkout, error) {
	if only, ok := single(ctx, g); ok {
		return []Checkout{only}, nil
	}
	out, err := g.Output(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	all := parse(out)
	byDir := map[string]string{}
	for _, gitDir := range linkedDirs(g) {
		if top, err := git.LinkedTop(gitDir); err == nil {
			byDir[top] = gitDir
		}
	}
	for i := range all {
		c := &all[i]
		if !filepath.IsAbs(c.Dir) { // an older git prints a relative path of its records as it is
			c.Dir = git.Resolved(filepath.Join(g.Common(), "worktrees", "any", c.Dir))
		}
		if c.GitDir = byDir[c.Dir]; i == 0 {
			c.GitDir = g.Common()
		}
		if c.GitDir != "" {
			c.Begun = begun(c.GitDir)
		}
	}
	return all, nil
}

// single returns the main checkout of a repository without linked worktrees, as git's list has it. Usually it starts no process.
func single(ctx context.Context, g git.Runner) (c Checkout, ok bool) {
	linked, err := os.ReadDir(filepath.Join(g.Common(), "worktrees"))
	if len(linked) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) || filepath.Base(g.Common()) != ".git" {
		return Checkout{}, false
	}
	c, err = Checkout{Dir: filepath.Dir(g.Common()), GitDir: g.Common()}.Now(ctx, g)
	return c, err == nil
}

// Now reads again which branches the checkout has. Its git directory has to be known.
func (c Checkout) Now(ctx context.Context, g git.Runner) (Checkout, error) {
	branch, err := g.Head(ctx, c.GitDir)
	if git.ExitCode(err) == 1 {
		branch, err = "", nil // detached
	}
	c.Branch, c.Begun = branch, begun(c.GitDir)
	return c, err
}

// OfUsers returns the branches of this prefix, by full ref, that checkouts of the user's have. Usually there is none, and list is
// not called.
func OfUsers(ctx context.Context, g git.Runner, prefix string, list func(context.Context) ([]Checkout, error)) (map[string]*HeldError, error) {
	matches := func(ref string) bool { return strings.HasPrefix(ref, prefix) }
	users := func(gitDir string) bool {
		locked, _ := git.ReadLinked(filepath.Join(gitDir, "locked")) // most are not locked
		return !strings.HasPrefix(string(locked), git.LockReason) && mayHave(gitDir, matches)
	}
	if g.PlainRefs() && !slices.ContainsFunc(append(linkedDirs(g), g.Common()), users) {
		return nil, nil
	}
	all, err := list(ctx)
	held := map[string]*HeldError{}
	for _, c := range all {
		for _, ref := range append(slices.Collect(maps.Keys(c.Begun)), c.Branch) {
			if matches(ref) && !strings.HasPrefix(c.Reason, git.LockReason) {
				held[ref] = c.Held(ref)
			}
		}
	}
	return held, err
}

// mayHave reports whether files of a git directory name such a branch.
func mayHave(gitDir string, matches func(ref string) bool) bool {
	head, _, err := git.ReadRegular(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) // an old git's HEAD is a link
	}
	return matches(strings.TrimSpace(strings.TrimPrefix(string(head), "ref:"))) || slices.ContainsFunc(slices.Collect(maps.Keys(begun(gitDir))), matches)
}

// parse parses the output of `git worktree list --porcelain -z`.
func parse(out string) []Checkout {
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

// linkedDirs returns the git directories of the linked worktrees.
func linkedDirs(g git.Runner) (dirs []string) {
	parent := filepath.Join(g.Common(), "worktrees")
	entries, _ := os.ReadDir(parent) // most repositories have none
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(parent, e.Name()))
	}
	return dirs
}

// begun returns the branches of an unfinished rebase or bisection in a git directory, as git's own check finds them.
func begun(gitDir string) map[string]operation.Operation {
	read := func(name string) string {
		content, _, _ := git.ReadRegular(filepath.Join(gitDir, name)) // most do not exist
		return string(content)
	}
	branches := map[string]operation.Operation{}
	add := func(name string, op operation.Operation) {
		ref := git.Heads + strings.TrimPrefix(strings.TrimSuffix(name, "\n"), git.Heads)
		if git.ValidRef(ref) {
			branches[ref] = op
		}
	}
	if op := operation.Unfinished(gitDir); op == operation.Rebase {
		add(read("rebase-apply/head-name"), op)
		add(read("rebase-merge/head-name"), op)
		for i, line := range strings.Split(read("rebase-merge/update-refs"), "\n") {
			if i%3 == 0 { // then its commits before and after
				add(line, op)
			}
		}
	}
	if read("BISECT_LOG") != "" { // it may go on during another operation
		add(read("BISECT_START"), operation.Bisect)
	}
	return branches
}
