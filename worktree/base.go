package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/refname"
)

// Base resolves ref (a branch, tag, remote branch or commit); empty means the branch checked out at Dir, and wraps ErrNoBase
// when there is none or it has no commits. Of equal names a branch comes first, then a remote branch, then a tag.
func (r *Repo) Base(ctx context.Context, ref string) (Base, error) {
	if ref == "" {
		return r.headBase(ctx)
	}
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, "\x00\n") {
		return Base{}, fmt.Errorf("base %q is not a name of a branch, tag or commit", ref)
	}
	candidates := []string{refname.Branch(ref), "refs/remotes/" + ref, "refs/tags/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		candidates = append([]string{ref}, candidates...)
	}
	found := ""
	if git.ValidRef(candidates[0]) {
		refs, err := r.git.Refs(ctx, candidates...)
		if err != nil {
			return Base{}, fmt.Errorf("base %s: %w", ref, err)
		}
		for _, c := range candidates {
			if refs[c] != "" {
				found = c
				break
			}
		}
		if strings.HasPrefix(found, "refs/heads/") { // git lets nobody point a branch to anything but a commit
			return Base{Name: git.DisplayName(ref), Ref: found, Commit: refs[found]}, nil
		}
	}
	name := ref
	if found != "" {
		name = found
	}
	commit, err := r.git.Out(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if git.Failed(err) {
		return Base{}, fmt.Errorf("base %s: no such branch, tag or commit; list branches with: git branch --all", git.Printable(ref))
	}
	if err != nil {
		return Base{}, fmt.Errorf("base %s: %w", ref, err)
	}
	return Base{Name: git.DisplayName(ref), Ref: found, Commit: commit}, nil
}

// Settled fails with ErrUnended while a merge, a rebase or the like has not ended in the user's checkout.
func (r *Repo) Settled(ctx context.Context) error { return r.git.Settled(ctx, r.gitDir, r.top) }

// headBase is the branch that is checked out at Dir.
func (r *Repo) headBase(ctx context.Context) (Base, error) {
	ref, err := r.git.Head(ctx, r.gitDir)
	if git.ExitCode(err) == 1 {
		return Base{}, fmt.Errorf("%w: no branch is checked out in %s", ErrNoBase, r.top)
	}
	if err != nil {
		return Base{}, fmt.Errorf("base: %w", err)
	}
	refs, err := r.git.Refs(ctx, ref)
	if err != nil {
		return Base{}, fmt.Errorf("base: %w", err)
	}
	if refs[ref] == "" {
		all, err := r.git.Refs(ctx, "refs/heads/")
		if err != nil {
			return Base{}, fmt.Errorf("base: %w", err)
		}
		if len(all) > 0 {
			return Base{}, fmt.Errorf("%w: branch %s has no commits yet", ErrNoBase, git.DisplayName(ref))
		}
		return Base{}, errors.New("repository has no commits yet; make the first with: git commit --allow-empty -m init")
	}
	return Base{Name: git.DisplayName(ref), Ref: ref, Commit: refs[ref]}, nil
}
