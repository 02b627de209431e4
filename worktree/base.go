package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Base is what a run starts from, and goes back to.
type Base struct {
	Name   string `json:"name"` // as people say it: "main"
	Ref    string `json:"ref"`  // full ref; empty for a bare commit
	Commit string `json:"commit"`
	// Remote is the branch on the remote that the base is: what people have there counts, and not the branch here. Empty:
	// the one here counts.
	Remote string `json:"remote,omitempty"`
}

// Has reports whether a file or folder stands at the path, from the top, in the commit.
func (r *Repo) Has(ctx context.Context, commit, path string) (bool, error) {
	out, err := r.git.out(ctx, "ls-tree", "--name-only", "-z", commit, "--", path)
	return out != "", err
}

// Base resolves ref (a branch, tag, remote branch or commit); empty means the branch checked out at Dir. An unborn
// branch, a detached HEAD (for an empty ref) and an unknown name are errors that say the mend. Of equal names a branch
// comes before a remote branch, and that before a tag.
func (r *Repo) Base(ctx context.Context, ref string) (Base, error) {
	if ref == "" {
		return r.headBase(ctx)
	}
	if strings.HasPrefix(ref, "-") || strings.ContainsAny(ref, "\x00\n") {
		return Base{}, fmt.Errorf("base %q is not a name of a branch, tag or commit", ref)
	}
	candidates := []string{branchRef(ref), "refs/remotes/" + ref, "refs/tags/" + ref}
	if strings.HasPrefix(ref, "refs/") {
		candidates = append([]string{ref}, candidates...)
	}
	found := ""
	if validRef(candidates[0]) {
		refs, err := r.readRefs(ctx, candidates...)
		if err != nil {
			return Base{}, fmt.Errorf("base %s: %w", ref, err)
		}
		for _, c := range candidates {
			if refs[c] != "" {
				found = c
				break
			}
		}
		if strings.HasPrefix(found, "refs/heads/") { // a branch is at a commit: git lets nobody move it to anything else
			return Base{Name: displayName(ref), Ref: found, Commit: refs[found]}, nil
		}
	}
	name := ref
	if found != "" {
		name = found
	}
	commit, err := r.git.out(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", name+"^{commit}")
	if _, failed := errors.AsType[*GitError](err); failed {
		return Base{}, fmt.Errorf("base %s: no such branch, tag or commit; list branches with: git branch --all", printable(ref))
	}
	if err != nil {
		return Base{}, fmt.Errorf("base %s: %w", ref, err)
	}
	return Base{Name: displayName(ref), Ref: found, Commit: commit}, nil
}

// headBase is the branch that is checked out at Dir.
func (r *Repo) headBase(ctx context.Context) (Base, error) {
	ref, err := r.headRef(ctx)
	if failed, ok := errors.AsType[*GitError](err); ok && failed.ExitCode == 1 {
		return Base{}, fmt.Errorf("no branch is checked out in %s; name one with: --base BRANCH", r.top)
	}
	if err != nil {
		return Base{}, fmt.Errorf("base: %w", err)
	}
	refs, err := r.readRefs(ctx, ref)
	if err != nil {
		return Base{}, fmt.Errorf("base: %w", err)
	}
	if refs[ref] == "" {
		all, err := r.git.readRefs(ctx, "refs/heads/")
		if err != nil {
			return Base{}, fmt.Errorf("base: %w", err)
		}
		if len(all) > 0 {
			return Base{}, fmt.Errorf("branch %s has no commits yet; name another with: --base BRANCH", displayName(ref))
		}
		return Base{}, errors.New("repository has no commits yet; make the first with: git commit --allow-empty -m init")
	}
	return Base{Name: displayName(ref), Ref: ref, Commit: refs[ref]}, nil
}

// headRef is the full name of the branch that is checked out at Dir.
func (r *Repo) headRef(ctx context.Context) (string, error) {
	if ref, ok := r.refs.headBranch(r.gitDir); ok && ctx.Err() == nil {
		return ref, nil
	}
	return r.git.out(ctx, "symbolic-ref", "--quiet", "HEAD")
}

// displayName is a ref as people say it.
func displayName(ref string) string {
	for _, prefix := range []string{"refs/heads/", "refs/remotes/", "refs/tags/"} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return name
		}
	}
	return ref
}
