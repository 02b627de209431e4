// Package base resolves the base of runs: the commit from which they start. Its caller is package worktree.
package base

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
)

// ErrNone means that no branch with commits is named or checked out.
var ErrNone = errors.New("no base branch")

// ErrOwn means that the checked-out branch is one of ralph's own.
var ErrOwn = errors.New("is ralph's own branch and cannot be the base of other issues")

// Foreign fails with ErrOwn if nobody has named a base and the checked-out branch begins with ralph's prefix. Such a branch
// is checked out to be looked at, and other issues would pile up on its work.
func Foreign(b record.Base, named, prefix string) error {
	if named != "" || !strings.HasPrefix(b.Ref, git.Heads+prefix) {
		return nil
	}
	return fmt.Errorf("%s, which is checked out, %w", b.Name, ErrOwn)
}

// Find resolves ref: a branch, tag, remote branch or commit. An empty ref means the branch checked out at the location.
// Find wraps ErrNone if there is none or it has no commits. If names clash, a branch comes before a remote branch, and that
// before a tag.
func Find(ctx context.Context, g git.Runner, at git.Location, ref string) (record.Base, error) {
	if ref == "" {
		return head(ctx, g, at)
	}
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, "\x00\n") {
		return record.Base{}, fmt.Errorf("%q is not a name of a branch, tag or commit", ref)
	}
	candidates := []string{refname.Branch(ref), "refs/remotes/" + ref, "refs/tags/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		candidates = append([]string{ref}, candidates...)
	}
	found := ""
	if git.ValidRef(candidates[0]) {
		refs, err := g.Refs(ctx, candidates...)
		if err != nil {
			return record.Base{}, fmt.Errorf("find %s: %w", ref, err)
		}
		for _, c := range candidates {
			if refs[c] != "" {
				found = c
				break
			}
		}
		if strings.HasPrefix(found, "refs/heads/") { // git only lets branches point to commits
			return record.Base{Name: git.DisplayName(ref), Ref: found, Commit: refs[found]}, nil
		}
	}
	name := ref
	if found != "" {
		name = found
	}
	commit, err := g.Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if git.Failed(err) {
		return record.Base{}, fmt.Errorf("no branch, tag or commit is named %s; list branches with: git branch --all", git.Printable(ref))
	}
	if err != nil {
		return record.Base{}, fmt.Errorf("find %s: %w", ref, err)
	}
	return record.Base{Name: git.DisplayName(ref), Ref: found, Commit: commit}, nil
}

// head returns the checked-out branch.
func head(ctx context.Context, g git.Runner, at git.Location) (record.Base, error) {
	ref, err := g.Head(ctx, at.GitDir)
	if git.ExitCode(err) == 1 {
		if err := operation.CheckNone(ctx, g, at.GitDir, at.Top); err != nil { // git switches to no branch during a merge or rebase
			return record.Base{}, fmt.Errorf("%w: %w", ErrNone, err)
		}
		return record.Base{}, fmt.Errorf("%w: no branch is checked out in %s", ErrNone, at.Top)
	}
	if err != nil {
		return record.Base{}, fmt.Errorf("base: %w", err)
	}
	refs, err := g.Refs(ctx, ref)
	if err != nil {
		return record.Base{}, fmt.Errorf("base: %w", err)
	}
	if refs[ref] == "" {
		all, err := g.Refs(ctx, "refs/heads/")
		if err != nil {
			return record.Base{}, fmt.Errorf("base: %w", err)
		}
		if len(all) > 0 {
			return record.Base{}, fmt.Errorf("%w: branch %s has no commits yet", ErrNone, git.DisplayName(ref))
		}
		return record.Base{}, fmt.Errorf("repository %s has no commits yet; make the first with: git -C %s commit --allow-empty -m init",
			at.Top, git.Quote(at.Top))
	}
	return record.Base{Name: git.DisplayName(ref), Ref: ref, Commit: refs[ref]}, nil
}
