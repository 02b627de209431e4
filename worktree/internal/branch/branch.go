// Package branch lists what ralph's runs have left in a repository, by issue: branches, imported commits and saved changes.
// Its caller is package worktree.
package branch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/leftover"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Tip returns the tip of a key's branch. If there is none, or if it was left behind because it was checked out, Tip returns the
// last imported commit. The refs include the branch, the work ref and the old tips.
func Tip(n refname.Names, refs map[string]string, branch, key string) string {
	at, work := refs[branch], refs[n.Work(key)]
	if at == "" || work != "" && refs[n.Left(key, at)] == at {
		return work
	}
	return at
}

// Tree is a worktree: its folder, key and branch.
type Tree struct{ Dir, Key, Branch string }

// Lister lists the branches of a repository.
type Lister struct {
	Git   git.Runner
	Names refname.Names
}

// List lists branches and saved changes by key, compared with the commit base. It calls trees after reading the refs, so
// that a branch in the making is not listed without its worktree.
func (l Lister) List(ctx context.Context, base string, trees func() []Tree) ([]leftover.Branch, error) {
	all, err := l.all(ctx, trees)
	if err == nil {
		err = l.countAhead(ctx, base, all)
	}
	for i := range all {
		if err == nil {
			err = l.placeSaved(ctx, &all[i])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	return all, nil
}

// all collects the branches by key from refs and worktrees.
func (l Lister) all(ctx context.Context, trees func() []Tree) ([]leftover.Branch, error) {
	refs, err := l.Git.Refs(ctx, l.Names.Branches, l.Names.Works(), l.Names.WIPs(), l.Names.AllOlds())
	if err != nil {
		return nil, err
	}
	byKey := map[string]*leftover.Branch{}
	of := func(key string) *leftover.Branch {
		if byKey[key] == nil {
			byKey[key] = &leftover.Branch{Key: key}
		}
		return byKey[key]
	}
	for ref, sha := range refs {
		if key, ok := strings.CutPrefix(ref, l.Names.Branches); ok && refname.CheckKey(key) == nil {
			of(key).Name, of(key).Tip = strings.TrimPrefix(ref, git.Heads), Tip(l.Names, refs, ref, key)
		}
		if key, ok := strings.CutPrefix(ref, l.Names.WIPs()); ok {
			of(key).WIP = sha
		}
	}
	for ref, sha := range refs {
		if key, ok := strings.CutPrefix(ref, l.Names.Works()); ok && of(key).Tip == "" {
			of(key).Tip = sha
		}
	}
	for _, t := range trees() {
		b := of(t.Key)
		b.Tree = t.Dir
		if b.Name == "" && strings.HasPrefix(refname.Branch(t.Branch), l.Names.Branches) { // another name is a branch of the user's own
			b.Name = t.Branch
		}
	}
	all := make([]leftover.Branch, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, *byKey[key])
	}
	return all, nil
}

// countAhead fills in Ahead for all branches at once: a single walk lists the commits that base lacks, with their parents.
func (l Lister) countAhead(ctx context.Context, base string, branches []leftover.Branch) error {
	var in strings.Builder
	for _, b := range branches {
		if b.Tip != "" {
			in.WriteString(b.Tip + "\n")
		}
	}
	if in.Len() == 0 {
		return nil
	}
	out, err := l.Git.Run(ctx, in.String()+"^"+base+"\n", "rev-list", "--parents", "--stdin")
	if err != nil {
		return err
	}
	s := span.Span{Parents: map[string][]string{}}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 {
			s.Parents[fields[0]] = fields[1:]
		}
	}
	var open []string
	for i := range branches {
		if b := &branches[i]; b.Tip != "" {
			b.Ahead = len(s.Reach(b.Tip))
			if b.Merged = b.Ahead == 0; !b.Merged {
				open = append(open, b.Tip)
			}
		}
	}
	merged, err := span.Merged(ctx, l.Git, base, open)
	for i := range branches {
		branches[i].Merged = branches[i].Merged || merged[branches[i].Tip]
	}
	return err
}

// placeSaved fills in ContainedIn and Stale.
func (l Lister) placeSaved(ctx context.Context, b *leftover.Branch) error {
	if b.Name == "" && b.Tip != "" && !b.Merged {
		out, err := l.Git.Output(ctx, "for-each-ref", "--contains="+b.Tip, "--format=%(refname)", "--", git.Heads)
		if err != nil {
			return err
		}
		for ref := range strings.Lines(out) {
			ref = strings.TrimSuffix(ref, "\n")
			if !strings.HasPrefix(ref, l.Names.Branches) { // a branch of ralph's own will be dropped, so it does not count
				b.ContainedIn = strings.TrimPrefix(ref, git.Heads)
				break
			}
		}
	}
	if b.WIP == "" || b.Tip == "" {
		return nil
	}
	on, err := l.Git.Output(ctx, "rev-parse", "--verify", b.WIP+"^1")
	if err != nil || on == b.Tip {
		return err
	}
	b.Stale, err = l.Git.Contains(ctx, b.Tip, on)
	return err
}
