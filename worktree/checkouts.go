package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// checkout is a worktree that git knows, the user's or ralph's.
type checkout struct {
	dir    string
	branch string // full ref; empty when detached
	reason string // why it is locked
}

// checkouts lists all of them.
func (r *Repo) checkouts(ctx context.Context) ([]checkout, error) {
	unlock, err := r.lockWorktrees(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out, err := r.git.out(ctx, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return nil, fmt.Errorf("list worktrees: %w", err)
	}
	return parseCheckouts(out), nil
}

// parseCheckouts reads `git worktree list --porcelain -z`.
func parseCheckouts(out string) []checkout {
	var all []checkout
	for field := range strings.SplitSeq(out, "\x00") {
		name, value, _ := strings.Cut(field, " ")
		switch {
		case name == "worktree":
			all = append(all, checkout{dir: value})
		case len(all) == 0:
		case name == "branch":
			all[len(all)-1].branch = value
		case name == "locked":
			all[len(all)-1].reason = value
		}
	}
	return all
}

// gitDirOf finds the git directory of a checkout in the repository's own records, without looking into the checkout.
func (r *Repo) gitDirOf(dir string) (string, error) {
	if dir == r.top {
		return r.gitDir, nil
	}
	links, err := filepath.Glob(filepath.Join(escapeGlob(r.common), "worktrees", "*", "gitdir"))
	if err != nil {
		return "", err
	}
	for _, link := range links {
		content, err := os.ReadFile(link)
		if err == nil && strings.TrimSuffix(string(content), "\n") == filepath.Join(dir, ".git") {
			return filepath.Dir(link), nil
		}
	}
	if filepath.Join(dir, ".git") == r.common {
		return r.common, nil
	}
	return "", fmt.Errorf("the git directory of the checkout %s is not known; check: git worktree list", dir)
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// freeBranch makes sure that no checkout has the branch. What is left of a worktree of ralph's whose folder and record
// are gone (a lost state folder) is cleared; its commits are kept first.
func (r *Repo) freeBranch(ctx context.Context, s Spec, have map[string]string) error {
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.branch != branchRef(s.Branch) {
			continue
		}
		if _, err := os.Lstat(c.dir); err == nil || !strings.HasPrefix(c.reason, lockReason) {
			return fmt.Errorf("branch %s is checked out in %s; free it with: git -C %s switch --detach", s.Branch, c.dir, quote(c.dir))
		}
		gitDir, err := r.gitDirOf(c.dir)
		if err != nil {
			return err
		}
		if err := r.keepHead(ctx, s.Key, gitDir, c.dir, have[branchRef(s.Branch)]); err != nil {
			return err
		}
		if err := r.unlink(gitDir, r.path("trash", filepath.Base(gitDir)+"-"+rand.Text())); err != nil {
			return fmt.Errorf("clear lost worktree %s: %w", c.dir, err)
		}
	}
	return nil
}

// keepHead puts the commit that a lost worktree stood at under refs/ralph/old, unless branch has it.
func (r *Repo) keepHead(ctx context.Context, key, gitDir, dir, branch string) error {
	g := newGit(r.opts.StateDir, environ()).pin(gitDir, r.common, dir)
	head, err := g.out(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if _, failed := errors.AsType[*GitError](err); failed {
		return nil // no commit is there to be kept
	}
	if err != nil {
		return err
	}
	inside, err := r.git.contains(ctx, branch, head)
	if err != nil || inside {
		return err
	}
	return r.git.moveRefs(ctx, "keep tip of lost worktree", refEdit{ref: oldRef(key, head), new: head, keep: true})
}
