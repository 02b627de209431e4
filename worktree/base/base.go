// Package base finds the commit that runs start from.
package base

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// ErrNone means that no branch with commits is named or checked out.
var ErrNone = errors.New("no base branch")

// ErrOwn means that the branch that is checked out is one of ralph's own.
var ErrOwn = errors.New("is a branch of ralph's own, and no base for other issues")

// Foreign refuses a base that nobody has named and whose branch begins with ralph's prefix: it is checked out to be looked at, and other
// issues would pile up on its work.
func Foreign(b record.Base, named, prefix string) error {
	if named != "" || !strings.HasPrefix(b.Ref, git.Heads+prefix) {
		return nil
	}
	return fmt.Errorf("%s, which is checked out, %w", b.Name, ErrOwn)
}

// Find resolves ref (a branch, tag, remote branch or commit); empty means the branch checked out at the place, and wraps ErrNone when
// there is none or it has no commits. Of equal names a branch comes first, then a remote branch, then a tag.
func Find(ctx context.Context, g git.Runner, at git.Location, ref string) (record.Base, error) {
	if ref == "" {
		return head(ctx, g, at)
	}
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, "\x00\n") {
		return record.Base{}, fmt.Errorf("base %q is not a name of a branch, tag or commit", ref)
	}
	candidates := []string{refname.Branch(ref), "refs/remotes/" + ref, "refs/tags/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		candidates = append([]string{ref}, candidates...)
	}
	found := ""
	if git.ValidRef(candidates[0]) {
		refs, err := g.Refs(ctx, candidates...)
		if err != nil {
			return record.Base{}, fmt.Errorf("base %s: %w", ref, err)
		}
		for _, c := range candidates {
			if refs[c] != "" {
				found = c
				break
			}
		}
		if strings.HasPrefix(found, "refs/heads/") { // git lets nobody point a branch to anything but a commit
			return record.Base{Name: git.DisplayName(ref), Ref: found, Commit: refs[found]}, nil
		}
	}
	name := ref
	if found != "" {
		name = found
	}
	commit, err := g.Out(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if git.Failed(err) {
		return record.Base{}, fmt.Errorf("base %s: no such branch, tag or commit; list branches with: git branch --all", git.Printable(ref))
	}
	if err != nil {
		return record.Base{}, fmt.Errorf("base %s: %w", ref, err)
	}
	return record.Base{Name: git.DisplayName(ref), Ref: found, Commit: commit}, nil
}

// head is the branch that is checked out.
func head(ctx context.Context, g git.Runner, at git.Location) (record.Base, error) {
	ref, err := g.Head(ctx, at.GitDir)
	if git.ExitCode(err) == 1 {
		if err := operation.Settled(ctx, g, at.GitDir, at.Top); err != nil { // git switches to no branch before its end
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
