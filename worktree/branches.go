package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/refname"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Branch is what ralph left for one key.
type Branch struct {
	Key    string
	Name   string // short branch name; empty when only saved commits are left
	On     string // without a Name: another branch that contains the saved commits
	Tip    string // of the branch, or the last imported commit
	Ahead  int    // commits that the base does not have
	Merged bool   // the base has all that the branch changes, in its commits or in others
	WIP    string
	Stale  bool   // WIP was saved before the branch's latest commits
	Tree   string // path of its worktree, if one exists
}

// Branches lists ralph's branches and saved changes against base, by key. The branches are also returned with a
// [*record.Errors].
func (r *Repo) Branches(ctx context.Context, base Base) ([]Branch, error) {
	refs, err := r.git.Refs(ctx, r.names.Branches, r.names.Works(), r.names.WIPs())
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	trees, treesErr := r.Trees(ctx)
	byKey := map[string]*Branch{}
	of := func(key string) *Branch {
		if byKey[key] == nil {
			byKey[key] = &Branch{Key: key}
		}
		return byKey[key]
	}
	for ref, sha := range refs {
		if key, ok := strings.CutPrefix(ref, r.names.Branches); ok && refname.CheckKey(key) == nil {
			of(key).Name, of(key).Tip = r.BranchName(key), sha
		}
		if key, ok := strings.CutPrefix(ref, r.names.WIPs()); ok {
			of(key).WIP = sha
		}
	}
	for ref, sha := range refs {
		if key, ok := strings.CutPrefix(ref, r.names.Works()); ok && of(key).Tip == "" {
			of(key).Tip = sha
		}
	}
	for _, t := range trees {
		s := t.Spec()
		b := of(s.Key)
		b.Tree = t.Dir()
		if b.Name == "" && strings.HasPrefix(refname.Branch(s.Branch), r.names.Branches) { // a named branch is the user's own
			b.Name = s.Branch
		}
	}
	all := make([]Branch, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, *byKey[key])
	}
	err = r.countAhead(ctx, base, all)
	for i := range all {
		if err == nil {
			err = r.placeSaved(ctx, &all[i])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	return all, treesErr
}

// countAhead counts for all branches at once: one walk gives every commit that base does not have, and its parents.
func (r *Repo) countAhead(ctx context.Context, base Base, branches []Branch) error {
	var in strings.Builder
	for _, b := range branches {
		if b.Tip != "" {
			in.WriteString(b.Tip + "\n")
		}
	}
	if in.Len() == 0 {
		return nil
	}
	out, err := r.git.Run(ctx, in.String()+"^"+base.Commit+"\n", "rev-list", "--parents", "--stdin")
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
	merged, err := span.Merged(ctx, r.git, base.Commit, open)
	for i := range branches {
		branches[i].Merged = branches[i].Merged || merged[branches[i].Tip]
	}
	return err
}

// placeSaved fills in On and Stale.
func (r *Repo) placeSaved(ctx context.Context, b *Branch) error {
	if b.Name == "" && b.Tip != "" && !b.Merged {
		out, err := r.git.Out(ctx, "for-each-ref", "--contains="+b.Tip, "--format=%(refname)", "--", git.Heads)
		if err != nil {
			return err
		}
		for ref := range strings.Lines(out) {
			ref = strings.TrimSuffix(ref, "\n")
			if !strings.HasPrefix(ref, r.names.Branches) { // ralph's own branches are dropped later
				b.On = strings.TrimPrefix(ref, git.Heads)
				break
			}
		}
	}
	if b.WIP == "" || b.Tip == "" {
		return nil
	}
	on, err := r.git.Out(ctx, "rev-parse", "--verify", b.WIP+"^1")
	if err != nil || on == b.Tip {
		return err
	}
	b.Stale, err = r.git.Contains(ctx, b.Tip, on)
	return err
}

// Drop deletes the key's branch and ralph's refs for it, saved changes and old tips included, if the branch (without one, the
// last imported commit) is still at tip; otherwise it fails with ErrMoved. It refuses while the branch is checked out anywhere.
func (r *Repo) Drop(ctx context.Context, key, tip string) error {
	if err := refname.CheckKey(key); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	unlock, err := r.lock(ctx, key)
	if err != nil {
		return fmt.Errorf("drop %s: %w", key, err)
	}
	defer unlock()
	if err := r.drop(ctx, key, tip); err != nil {
		return fmt.Errorf("drop %s: %w", key, err)
	}
	return nil
}

func (r *Repo) drop(ctx context.Context, key, tip string) error {
	branch := r.names.Branches + key
	refs, err := r.git.Refs(ctx, branch, r.names.Work(key), r.names.WIP(key), r.names.Olds(key))
	if err != nil {
		return err
	}
	at := refs[branch]
	if at == "" {
		at = refs[r.names.Work(key)]
	}
	if at != tip {
		return fmt.Errorf("%w: it is at %s, expected %s", ErrMoved, git.OrNothing(at), git.OrNothing(tip))
	}
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Branch == branch {
			return fmt.Errorf("the branch is checked out in %s", c.Dir)
		}
	}
	trees, err := r.Trees(ctx)
	broken, unreadable := errors.AsType[*record.Errors](err)
	if err != nil && !unreadable {
		return err
	}
	if unreadable { // those of other keys do not matter
		for path, err := range broken.Records {
			name := strings.TrimSuffix(filepath.Base(path), record.Suffix)
			if strings.HasPrefix(name, record.FolderPrefix(key)) && len(name) == len(record.FolderPrefix(key)+git.Digest()) {
				return fmt.Errorf("%w: %w", ErrKept, err)
			}
		}
	}
	for _, t := range trees {
		if t.Spec().Key == key {
			return fmt.Errorf("%w: the worktree %s still exists", ErrKept, t.Dir())
		}
	}
	edits := make([]git.Edit, 0, len(refs))
	for ref, sha := range refs {
		edits = append(edits, git.Edit{Ref: ref, Old: sha})
	}
	return r.git.MoveRefs(ctx, edits...)
}
