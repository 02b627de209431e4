package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// place is where a job works.
type place struct {
	run, key string
	dir      string
	branch   string
	base     worktree.Base // the target, as it was at the start
	start    string        // the commit the agent starts from
	tree     *worktree.Tree
	claim    *worktree.Claim
	repo     *worktree.Repo
	last     *worktree.HandBack // the latest, for the result
}

func (j Job) open(ctx context.Context) (place, error) {
	at := place{run: newRun(time.Now()), repo: j.Repo, last: new(worktree.HandBack)}
	if err := j.recover(ctx); err != nil {
		return at, err
	}
	var err error
	at.base, err = j.Repo.Base(ctx, "")
	if err != nil && j.Strategy == StrategyHead {
		at.base, err = j.Repo.Base(ctx, "HEAD") // a detached head will do
	}
	if err != nil {
		return at, err
	}
	at.start, at.branch, at.dir = at.base.Commit, at.base.Name, j.Repo.Dir()
	switch j.Strategy {
	case StrategyMerge:
		at.key = j.scratch(at.run)
		at.branch = "ralph/" + at.key
	case StrategyBranch:
		at.branch, at.key = j.Branch, tracker.Key("branch-"+j.Branch)
	default:
		at.key = headKey + at.run // nobody else wants it; it tells a later job if this one dies
	}
	host, err := os.Hostname()
	if err != nil {
		return at, err
	}
	at.claim, err = j.Repo.Claim(ctx, at.key, worktree.Holder{Owner: fmt.Sprintf("%s/%d", host, os.Getpid()), Run: at.run}, jobLife)
	if err != nil {
		return at, fmt.Errorf("branch %s: %w", at.branch, err)
	}
	if j.Strategy == StrategyHead {
		return at, nil
	}
	if at.tree, err = j.addTree(ctx, at); err == nil {
		at.dir, at.start = at.tree.Dir(), at.tree.Start()
		err = at.tree.CopyIn(ctx, j.Copy)
	}
	if err != nil {
		at.free()
		return at, err
	}
	return at, nil
}

// addTree makes the worktree, or finds the one that an earlier job on the branch has left.
func (j Job) addTree(ctx context.Context, at place) (*worktree.Tree, error) {
	if j.Strategy == StrategyBranch {
		trees, err := j.Repo.Trees(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range trees {
			if t.Spec().Branch != j.Branch {
				continue
			}
			clean, err := t.Clean(ctx)
			if err != nil {
				return nil, err
			}
			if !clean && !j.AllowDirty {
				return nil, fmt.Errorf("the worktree of %s at %s has uncommitted changes: commit them, or work on with --allow-dirty: %w",
					j.Branch, t.Dir(), worktree.ErrDirty)
			}
			return t, nil
		}
	}
	return j.Repo.Add(ctx, worktree.Spec{
		Run: at.run, Key: at.key, Branch: at.branch, Base: at.base, Fresh: j.Strategy == StrategyMerge,
	})
}

// handBack takes the commits back; in the checkout itself they only have to be counted.
func (p place) handBack(ctx context.Context) (loop.Work, error) {
	if p.tree == nil {
		now, err := p.repo.Base(ctx, "HEAD")
		if err != nil {
			return loop.Work{}, err
		}
		commits, err := p.repo.Log(ctx, p.start, now.Commit)
		if err != nil {
			return loop.Work{}, err
		}
		before := len(p.last.Commits)
		*p.last = worktree.HandBack{Tip: now.Commit, Commits: commits}
		return loop.Work{Tip: now.Commit, Commits: len(commits), New: max(0, len(commits)-before)}, nil
	}
	h, err := p.tree.HandBack(ctx)
	if err != nil {
		return loop.Work{}, err
	}
	*p.last = h
	return loop.Work{Tip: h.Tip, Commits: len(h.Commits), New: h.New}, nil
}

// finish merges and cleans up, as the strategy says.
func (j Job) finish(ctx context.Context, at place, res *JobResult) error {
	res.Commits, res.WIP = at.last.Commits, at.last.WIP
	if at.tree == nil {
		return nil
	}
	res.Tree = at.tree.Dir()
	if j.Strategy != StrategyMerge {
		return nil
	}
	if len(res.Commits) == 0 && res.WIP == "" {
		return j.remove(ctx, at, res)
	}
	if res.End != loop.EndDone && res.End != loop.EndMaxed && res.End != loop.EndNoChange {
		return nil // what did not end well is not merged
	}
	if res.GateRan && !res.GatePassed() || res.WIP != "" && len(res.Commits) == 0 {
		return nil
	}
	if len(res.Commits) > 0 {
		if err := j.mergeBack(ctx, at, res); err != nil {
			return err
		}
	}
	if res.WIP != "" {
		return nil
	}
	return j.remove(ctx, at, res)
}

// remove takes a scratch branch and its worktree away.
func (j Job) remove(ctx context.Context, at place, res *JobResult) error {
	if err := at.tree.Remove(ctx); err != nil {
		return err
	}
	res.Tree = ""
	return at.repo.Drop(ctx, at.key, at.last.Tip)
}

// abandon takes a scratch branch away on which nothing could be run. What is on it all the same stays.
func (j Job) abandon(ctx context.Context, at place) error {
	if j.Strategy != StrategyMerge {
		return nil
	}
	if _, err := at.handBack(ctx); err != nil || len(at.last.Commits) > 0 || at.last.WIP != "" {
		return err
	}
	return j.remove(ctx, at, &JobResult{})
}

// headKey begins the keys of claims by jobs that work in the checkout itself.
const headKey = "job-head-"

// recover ends what jobs that died have left running, and takes their commits back. Their worktrees stay: the branch
// strategy works on in them, and `ralph clean` removes them.
func (j Job) recover(ctx context.Context) error {
	held, _, err := j.Repo.Claims(ctx)
	if err != nil {
		return err
	}
	trees, err := j.Repo.Trees(ctx)
	if err != nil {
		return err
	}
	for key, c := range held {
		i := slices.IndexFunc(trees, func(t *worktree.Tree) bool { return t.Spec().Key == key })
		if !c.Gone || i < 0 && !strings.HasPrefix(key, headKey) {
			continue
		}
		var tree *worktree.Tree
		if i >= 0 {
			tree = trees[i]
		}
		if err := j.recoverOne(ctx, key, c.Holder.Run, tree); err != nil {
			return fmt.Errorf("recover the run %s that died: %w", c.Holder.Run, err)
		}
	}
	return nil
}

func (j Job) recoverOne(ctx context.Context, key, run string, tree *worktree.Tree) error {
	claim, err := j.Repo.Claim(ctx, key, worktree.Holder{Owner: "recovery", Run: run}, time.Minute)
	if errors.Is(err, worktree.ErrTaken) {
		return nil // another ralph is at it
	}
	if err != nil {
		return err
	}
	err = proc.KillMarked(ctx, run)
	if r, ok := j.Sandboxes.(sandboxes.Reaper); ok && err == nil {
		err = r.Reap(ctx, run)
	}
	if err == nil {
		err = tempdir.RemoveRun(run)
	}
	if err == nil && tree != nil {
		var h worktree.HandBack
		h, err = tree.HandBack(ctx)
		if (h.New > 0 || h.WIP != "") && j.Recovered != nil {
			j.Recovered(Recovered{Run: run, Key: key, Branch: tree.Spec().Branch, New: h.New, WIP: h.WIP, Tree: tree.Dir()})
		}
	}
	return errors.Join(err, claim.Release(ctx))
}

func (j Job) mergeBack(ctx context.Context, at place, res *JobResult) error {
	unlock, err := at.repo.LockMerges(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for range merges {
		target, err := at.repo.Base(ctx, at.base.Ref)
		if err != nil {
			return err
		}
		res.Merged, err = at.repo.Merge(ctx, target, at.last.Tip, fmt.Sprintf("Merge %s", at.branch))
		if errors.Is(err, worktree.ErrMoved) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the work is kept on %s: %w", at.branch, err)
		}
		return nil
	}
	return fmt.Errorf("the work is kept on %s: merge into %s: %w", at.branch, at.base.Name, worktree.ErrMoved)
}

// free gives the branch to the next job.
func (p place) free() {
	if p.claim != nil {
		_ = p.claim.Release(context.Background()) // it ends with this process at the latest
	}
}
