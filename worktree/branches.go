package worktree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Branch is what ralph left for one key.
type Branch struct {
	Key    string
	Name   string // short branch name; empty when only saved commits are left
	On     string // without a Name: another branch that has all of the saved commits, such as the one a job was told to work on
	Tip    string // of the branch, or the last commit handed back
	Ahead  int    // commits the base has not
	Merged bool   // everything in it is contained in base
	WIP    string
	// Passed says that there are commits on top of what WIP was saved on: it is of before the latest work.
	Passed bool
	Tree   string // path of its worktree, if one exists
}

// Branches lists ralph's branches and saved changes against base, by key.
func (r *Repo) Branches(ctx context.Context, base Base) ([]Branch, error) {
	refs, err := r.git.readRefs(ctx, branchPrefix, "refs/ralph/work/", "refs/ralph/wip/")
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
		if key, ok := strings.CutPrefix(ref, branchPrefix); ok && checkKey(key) == nil {
			of(key).Name, of(key).Tip = "ralph/"+key, sha
		}
		if key, ok := strings.CutPrefix(ref, "refs/ralph/wip/"); ok {
			of(key).WIP = sha
		}
	}
	for ref, sha := range refs {
		if key, ok := strings.CutPrefix(ref, workPrefix); ok && of(key).Tip == "" {
			of(key).Tip = sha
		}
	}
	for _, t := range trees {
		s := t.Spec()
		b := of(s.Key)
		b.Tree = t.Dir()
		if b.Name == "" {
			b.Name = s.Branch
		}
	}
	all := make([]Branch, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, *byKey[key])
	}
	if err := r.countAhead(ctx, base, all); err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	for i := range all {
		if err := r.placeSaved(ctx, &all[i]); err != nil {
			return nil, fmt.Errorf("list branches: %w", err)
		}
	}
	return all, treesErr
}

// countAhead counts for all branches at once: one walk gives every commit that base has not, and its parents.
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
	out, err := r.git.run(ctx, in.String()+"^"+base.Commit+"\n", "rev-list", "--parents", "--stdin")
	if err != nil {
		return err
	}
	s := span{parents: map[string][]string{}}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 0 {
			s.parents[fields[0]] = fields[1:]
		}
	}
	for i := range branches {
		b := &branches[i]
		b.Ahead = len(s.reach(b.Tip))
		b.Merged = b.Tip != "" && b.Ahead == 0
	}
	return nil
}

// placeSaved says where saved commits are too, and whether saved changes are of before the latest commits.
func (r *Repo) placeSaved(ctx context.Context, b *Branch) error {
	if b.Name == "" && b.Ahead > 0 {
		out, err := r.git.out(ctx, "for-each-ref", "--contains="+b.Tip, "--format=%(refname)", "--", "refs/heads/")
		if err != nil {
			return err
		}
		for ref := range strings.Lines(out) {
			ref = strings.TrimSuffix(ref, "\n")
			if !strings.HasPrefix(ref, branchPrefix) { // those go, too
				b.On = strings.TrimPrefix(ref, "refs/heads/")
				break
			}
		}
	}
	if b.WIP == "" || b.Tip == "" {
		return nil
	}
	on, err := r.git.out(ctx, "rev-parse", "--verify", b.WIP+"^1")
	if err != nil || on == b.Tip {
		return err
	}
	b.Passed, err = r.git.contains(ctx, b.Tip, on)
	return err
}

// Drop deletes the key's branch and ralph's refs for it, saved changes and old tips included, exactly if the branch
// (without one, the last commit handed back) is still at tip. It fails with ErrMoved when it is not, and refuses while
// the branch is checked out anywhere.
func (r *Repo) Drop(ctx context.Context, key, tip string) error {
	if err := checkKey(key); err != nil {
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
	branch := branchPrefix + key
	refs, err := r.git.readRefs(ctx, branch, workRef(key), wipRef(key), oldPrefix(key))
	if err != nil {
		return err
	}
	at := refs[branch]
	if at == "" {
		at = refs[workRef(key)]
	}
	if at != tip {
		return fmt.Errorf("%w: it is at %s, expected %s", ErrMoved, orNone(at), orNone(tip))
	}
	all, err := r.checkouts(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.branch == branch {
			return fmt.Errorf("the branch is checked out in %s", c.dir)
		}
	}
	trees, err := r.Trees(ctx)
	if err != nil {
		return err
	}
	for _, t := range trees {
		if t.Spec().Key == key {
			return fmt.Errorf("%w: the worktree %s still exists", ErrKept, t.Dir())
		}
	}
	var edits []refEdit
	for ref, sha := range refs {
		edits = append(edits, refEdit{ref: ref, old: sha})
	}
	return r.git.moveRefs(ctx, "drop", edits...)
}
