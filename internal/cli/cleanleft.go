package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/worktree"
)

// leftover is all that ralph has left for one key.
type leftover struct {
	key    string
	trees  []leftTree
	branch worktree.Branch // the zero Branch: no ref
}

// leftTree is a worktree, of an issue's run or of a job's.
type leftTree struct {
	*worktree.Tree
	job bool
}

// name is the branch that people know it by.
func (l leftover) name() string {
	if len(l.trees) > 0 {
		return l.trees[0].Spec().Branch
	}
	return cmp.Or(l.branch.Name, l.branch.On)
}

// cleaner removes what is left. Whatever a dry one says, the other does.
type cleaner struct {
	p            *parts
	jobs         *worktree.Repo
	base         worktree.Base
	dry, discard bool
	held         map[string]worktree.ClaimState
	unsettled    map[string]bool // runs of issues that have not come to their end
}

// find lists what there is, by key.
func (c *cleaner) find(ctx context.Context) ([]leftover, error) {
	byKey := map[string]*leftover{}
	of := func(key string) *leftover {
		if byKey[key] == nil {
			byKey[key] = &leftover{key: key}
		}
		return byKey[key]
	}
	for _, repo := range []*worktree.Repo{c.p.repo, c.jobs} {
		trees, err := repo.Trees(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range trees {
			l := of(t.Spec().Key)
			l.trees = append(l.trees, leftTree{t, repo == c.jobs})
		}
	}
	branches, err := c.p.repo.Branches(ctx, c.base)
	if err != nil {
		return nil, err
	}
	for _, b := range branches {
		if b.Tip != "" || b.WIP != "" {
			of(b.Key).branch = b
		}
	}
	var all []leftover
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, *byKey[key])
	}
	return all, nil
}

// look finds out what is being worked. The claims of jobs are on this machine only.
func (c *cleaner) look(ctx context.Context) error {
	var err error
	if c.held, _, err = c.p.repo.Claims(ctx); err != nil {
		return err
	}
	jobs, _, err := c.jobs.Claims(ctx)
	if err != nil {
		return err
	}
	for key, state := range jobs {
		if there, ok := c.held[key]; !ok || there.Gone {
			c.held[key] = state
		}
	}
	open, err := c.p.journal.Open(ctx)
	if err != nil {
		return err
	}
	c.unsettled = map[string]bool{}
	for _, r := range open {
		c.unsettled[r.Run] = true
	}
	return nil
}

// clean removes what is left for one key, as far as it may go.
func (c *cleaner) clean(ctx context.Context, l leftover) []cleaned {
	keep := func(why string) []cleaned { return []cleaned{{l.key, l.name(), false, why}} }
	if held, claimed := c.held[l.key]; claimed && !held.Gone {
		return keep("it is being worked")
	}
	for _, t := range l.trees {
		if c.unsettled[t.Spec().Run] { // its agent may still be at work
			return keep("its run has not come to its end; `ralph work` goes on with it")
		}
	}
	var results []cleaned
	for _, t := range l.trees {
		if why := c.tree(ctx, t); why != "" {
			return append(results, keep(why)...)
		}
		results = append(results, cleaned{l.key, t.Spec().Branch, true, "worktree of a run that has ended"})
	}
	if l.branch.Key == "" {
		return results
	}
	b := c.branch(ctx, l)
	if b.Removed { // one line for all of it
		return []cleaned{b}
	}
	return append(results, b)
}

// tree removes a worktree, and says why it has not.
func (c *cleaner) tree(ctx context.Context, t leftTree) (why string) {
	s := t.Spec()
	died := ""
	if t.job {
		died = c.held[s.Key].Holder.Run
	}
	if !c.discard {
		left, err := t.Untaken(ctx)
		switch {
		case err != nil:
			return err.Error()
		case left != "" && died != "":
			return fmt.Sprintf("its run died and left %s in %s; the next `ralph run` takes that back and says where it is; "+
				"to have it now: `ralph sandbox exec -- true`; %s", left, t.Dir(), dropWith(s.Key))
		case left != "":
			return fmt.Sprintf("%s has %s, which ralph has not taken back; save it from there; %s", t.Dir(), left, dropWith(s.Key))
		}
	}
	if c.dry {
		return ""
	}
	remove := t.Remove
	if c.discard {
		remove = t.Discard
	}
	if t.job {
		held := cmp.Or(died, s.Run)
		claim, err := c.jobs.Claim(ctx, s.Key, worktree.Holder{Owner: "clean", Run: held}, time.Minute)
		if errors.Is(err, worktree.ErrTaken) {
			return "it is being worked"
		}
		if err == nil && died != "" { // its agent may still be at work
			err = errors.Join(proc.KillMarked(ctx, died), tempdir.RemoveRun(died))
		}
		if err == nil {
			err = remove(ctx)
		}
		if err == nil || died == "" { // else the claim is what a later job finds it by
			err = errors.Join(err, claim.Release(context.WithoutCancel(ctx)))
		}
		if err != nil {
			return err.Error()
		}
	} else if err := remove(ctx); err != nil {
		return err.Error()
	}
	if err := tempdir.RemoveRun(s.Run); err != nil { // nothing else leads to it any more
		return err.Error()
	}
	return ""
}

// branch removes the refs of a key.
func (c *cleaner) branch(ctx context.Context, l leftover) cleaned {
	b := l.branch
	keep := func(format string, args ...any) cleaned {
		return cleaned{l.key, l.name(), false, fmt.Sprintf(format, args...)}
	}
	why := "contained in " + c.base.Name
	switch nowhere := b.Tip != "" && !b.Merged; {
	case c.discard:
		why = "discarded"
		if b.Tip != "" {
			why += "; it was at " + shortSHA(b.Tip)
		}
	case nowhere && b.Name != "":
		return keep("%s not in %s; merge it, or %s", plural(b.Ahead, "commit"), c.base.Name, dropWith(l.key))
	case nowhere && b.On == "":
		return keep("%s not in %s and on no branch; keep it with `git branch NAME %s`; %s",
			plural(b.Ahead, "commit"), c.base.Name, shortSHA(b.Tip), dropWith(l.key))
	case b.WIP != "" && !b.Passed:
		return keep("it has uncommitted changes saved; look with `git show %s`; %s", shortSHA(b.WIP), dropWith(l.key))
	case nowhere:
		why = fmt.Sprintf("its commits stay on branch %s; ralph's own records go", b.On)
	}
	switch {
	case b.WIP == "":
	case b.Passed:
		why += "; changes saved before its last commits were " + shortSHA(b.WIP)
	default:
		why += "; its saved changes were " + shortSHA(b.WIP)
	}
	if !c.dry {
		if err := c.p.repo.Drop(ctx, l.key, b.Tip); err != nil {
			return keep("%v", err)
		}
	}
	return cleaned{l.key, l.name(), true, why}
}

// dropWith is how to be rid of it all the same.
func dropWith(key string) string { return "drop it with `ralph clean --discard " + key + "`" }
