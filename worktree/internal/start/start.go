// Package start picks the commit at which a run starts, and moves the refs of its issue there. Its caller is package worktree.
package start

import (
	"context"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/branch"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/record"
)

// Planner has what the start of a run depends on.
type Planner struct {
	Git    git.Runner
	Names  refname.Names
	Spec   record.Spec
	Refs   map[string]string // the key's refs in this repository: the branch, the work ref, saved changes and old tips
	Remote string            // tip of the branch on the remote
}

// Pick returns the commit at which the run starts.
func (p Planner) Pick(ctx context.Context) (string, error) {
	s := p.Spec
	if s.Fresh {
		return s.Base.Commit, nil
	}
	start := p.Refs[refname.Branch(s.Branch)]
	if start != "" {
		start = branch.Tip(p.Names, p.Refs, refname.Branch(s.Branch), s.Key)
	}
	if p.Remote != "" && p.Remote != start {
		newer, err := p.remoteIsNewer(ctx, start)
		if err != nil {
			return "", err
		}
		if newer {
			start = p.Remote
		}
	}
	if start == "" {
		return s.Base.Commit, nil
	}
	merged, err := p.Git.Contains(ctx, s.Base.Commit, start)
	if err == nil && !merged && s.ExcludedCommit != "" {
		merged, err = p.Git.ContainsIfPresent(ctx, start, s.ExcludedCommit)
	}
	if err != nil || merged {
		return s.Base.Commit, err
	}
	return start, nil
}

// remoteIsNewer reports whether the run continues from the remote branch. If both branches have their own commits, the
// remote one wins, because people see that one, unless its tip was here before and was replaced, for example by a rebase.
func (p Planner) remoteIsNewer(ctx context.Context, local string) (bool, error) {
	if local == "" {
		return true, nil
	}
	if key := p.Spec.Key; p.Remote == p.Refs[p.Names.Work(key)] || p.Refs[p.Names.OldTip(key, p.Remote)] == p.Remote {
		return false, nil
	}
	behind, err := p.Git.Contains(ctx, local, p.Remote)
	return !behind, err
}

// Edits returns the updates that move the branch and the work ref to start, and keep the tips not contained in it.
func (p Planner) Edits(ctx context.Context, start string) ([]git.Edit, error) {
	s, refs := p.Spec, p.Refs
	var edits []git.Edit
	kept := map[string]bool{}
	for _, tip := range []string{refs[refname.Branch(s.Branch)], refs[p.Names.Work(s.Key)], p.Remote} {
		if tip == "" || kept[tip] {
			continue
		}
		contained, err := p.Git.Contains(ctx, start, tip)
		if err != nil {
			return nil, err
		}
		if !contained {
			kept[tip] = true
			edits = append(edits, git.Edit{Ref: p.Names.OldTip(s.Key, tip), New: tip, Any: true})
		}
	}
	for ref, at := range refs {
		if ref == p.Names.Left(s.Key, at) {
			edits = append(edits, git.Edit{Ref: ref, Old: at})
		}
	}
	for _, ref := range []string{refname.Branch(s.Branch), p.Names.Work(s.Key)} {
		if refs[ref] != start {
			edits = append(edits, git.Edit{Ref: ref, New: start, Old: refs[ref]})
		}
	}
	return edits, nil
}
