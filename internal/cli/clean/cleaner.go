package clean

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/record"
)

// remains is all that ralph has left for one key.
type remains struct {
	key    string
	trees  []*worktree.Tree
	branch worktree.Branch // zero: no ref
	disks  []leftDisk
}

// name returns the branch as people know it.
func (l remains) name() string {
	if len(l.trees) > 0 {
		return l.trees[0].Spec().Branch
	}
	return cmp.Or(l.branch.Name, l.branch.ContainedIn)
}

// cleaner removes what is left. A dry run reports the same results.
type cleaner struct {
	p            *compose.Parts
	sandboxes    sandboxes.Registry
	local        *worktree.Repo // for the claims of jobs, which exist on this machine only
	base         worktree.Base
	host         string
	dry, discard bool
	held         map[string]worktree.ClaimState
	jobs         map[string]worktree.ClaimState // the local ones among held
	open         map[string]journal.Record      // unfinished runs, by ID
	keys         map[string]string              // of runs, by ID
	engines      map[string]bool                // names of the sandboxes that runs used
	empty        map[string]bool                // whether a key's latest run made no commits
	gone         map[string]string              // tips of removed branches whose commits are in the base, by name
	broken       error                          // the error of worktree records that cannot be read
}

// unreadable stores the error of unreadable worktree records, which only affects those worktrees. It returns any other error.
func (c *cleaner) unreadable(err error) error {
	if _, ok := errors.AsType[*record.Errors](err); !ok {
		return err
	}
	c.broken = err
	return nil
}

// find lists all remains by key.
func (c *cleaner) find(ctx context.Context) ([]remains, error) {
	byKey := map[string]*remains{}
	of := func(key string) *remains {
		if byKey[key] == nil {
			byKey[key] = &remains{key: key}
		}
		return byKey[key]
	}
	trees, err := c.p.Repo.Trees(ctx)
	if err := c.unreadable(err); err != nil {
		return nil, err
	}
	for _, t := range trees {
		l := of(t.Spec().Key)
		l.trees = append(l.trees, t)
	}
	branches, err := c.p.Repo.Branches(ctx, c.base)
	if err := c.unreadable(err); err != nil {
		return nil, err
	}
	for _, b := range branches {
		if b.Tip != "" || b.WIP != "" {
			of(b.Key).branch = b
		}
	}
	var all []remains
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		all = append(all, *byKey[key])
	}
	return all, nil
}

// lookBack is the number of runs that are searched for the engines they used.
const lookBack = 1000

// look loads the state of claims and runs.
func (c *cleaner) look(ctx context.Context) error {
	var err error
	if c.host, err = os.Hostname(); err != nil {
		return err
	}
	if c.held, err = c.p.Repo.Claims(ctx); err != nil {
		return err
	}
	if c.jobs, err = c.local.Claims(ctx); err != nil {
		return err
	}
	for key, state := range c.jobs {
		if there, ok := c.held[key]; !ok || there.Gone {
			c.held[key] = state
		}
	}
	open, err := c.p.Journal.Find(ctx, journal.Query{Open: true})
	if err != nil {
		return err
	}
	c.open, c.empty = map[string]journal.Record{}, map[string]bool{}
	for _, r := range open {
		c.open[r.ID] = r
	}
	last, err := c.p.Journal.Find(ctx, journal.Query{Latest: true})
	if err != nil {
		return err
	}
	for _, r := range last {
		c.empty[r.Key] = r.Commits == 0
	}
	recent, err := c.p.Journal.Find(ctx, journal.Query{Limit: lookBack}) // an earlier run of a key may have used another sandbox
	if err != nil {
		return err
	}
	c.keys, c.engines = map[string]string{}, map[string]bool{c.p.SandboxName(): true}
	for _, r := range slices.Concat(open, last, recent) {
		c.keys[r.ID], c.engines[r.Sandbox] = r.Key, true
	}
	return nil
}

// clean removes what is left for one key, as far as no work is lost.
func (c *cleaner) clean(ctx context.Context, l remains) []CleanedData {
	keep := func(why string, drop bool) []CleanedData {
		return []CleanedData{{Issue: l.key, Branch: l.name(), Why: why, drop: drop}}
	}
	if held, claimed := c.held[l.key]; claimed && !held.Gone && (held.Err != nil || held.Holder.Run != "" && !c.dead(held.Holder.Run)) {
		return keep("it is being worked", false)
	}
	var results []CleanedData
	for _, r := range c.openRuns(l.key) {
		switch {
		case c.discard && c.dead(r.ID):
		case r.Kind == journal.KindIssue:
			return keep("not finished; `ralph work` continues it", c.dead(r.ID))
		default:
			return keep("its run died; `ralph clean` imports its work", true)
		}
		if err := c.giveUp(ctx, r, l.trees); err != nil {
			return append(results, keep(err.Error(), false)...)
		}
		results = append(results, CleanedData{Issue: l.key, Branch: r.Branch, Removed: true, Why: "a run that was not finished"})
	}
	for _, t := range l.trees {
		if why := c.tree(ctx, t); why != "" {
			return append(results, keep(why, t.Unsaved())...)
		}
		results = append(results, CleanedData{Issue: l.key, Branch: t.Spec().Branch, Removed: true, Why: "worktree of a run that has ended"})
	}
	if l.branch.Key == "" {
		return results
	}
	b := c.branch(ctx, l)
	if b.Removed { // one row covers worktree and branch
		return []CleanedData{b}
	}
	return append(results, b)
}

// tree removes a worktree, or returns the reason why it stays.
func (c *cleaner) tree(ctx context.Context, t *worktree.Tree) (why string) {
	s := t.Spec()
	if t.Unsaved() && !c.discard {
		return t.Dir() + " may have work that is not imported"
	}
	if c.dry {
		return ""
	}
	remove := t.Remove
	if c.discard {
		remove = t.Discard
	}
	if err := c.endSandboxes(ctx, t); err != nil {
		return "its sandbox may still run: " + err.Error()
	}
	return reasonText(errors.Join(remove(ctx), tempdir.RemoveRun(s.Run)))
}

// engineLimit is how long an engine may take to stop what uses one worktree.
const engineLimit = 30 * time.Second

// endSandboxes stops the sandboxes that may still use a worktree: once the worktree is gone, nothing would find them.
func (c *cleaner) endSandboxes(ctx context.Context, t *worktree.Tree) error {
	s := t.Spec()
	runs, err := c.p.Journal.Find(ctx, journal.Query{Key: s.Key})
	if err != nil {
		return err
	}
	in := map[string]string{s.Run: c.p.SandboxName()} // sandbox names by run
	for _, r := range runs {
		switch of := r.ID == s.Run || r.ID == s.ParentRun; {
		case of && !s.Detached && !r.Ended.IsZero() && !r.SandboxMayRun && !t.Unsaved():
			delete(in, s.Run)
		case of:
			in[s.Run] = r.Sandbox
		case r.SandboxMayRun && r.Tree == t.Dir():
			in[r.ID] = r.Sandbox
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, engineLimit, fmt.Errorf("no end within %s", engineLimit))
	defer cancel()
	for run, name := range in {
		provider, err := c.sandboxes.Lookup(name)
		if err == nil {
			err = (&workspace.Config{Sandboxes: provider}).Reap(ctx, run)
		}
		switch missing := errors.Is(err, exec.ErrNotFound); {
		case err == nil, missing && c.discard:
		case missing: // cron has a short PATH
			return fmt.Errorf("%s is not in PATH; type `ralph clean` with %s in PATH, or `ralph clean --discard %s` without",
				name, name, s.Key)
		default:
			return fmt.Errorf("%w; `ralph clean` removes it once %s answers", err, name)
		}
	}
	return nil
}

func reasonText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// branch removes the refs of a key.
func (c *cleaner) branch(ctx context.Context, l remains) CleanedData {
	b := l.branch
	keep := func(format string, args ...any) CleanedData {
		return CleanedData{Issue: l.key, Branch: l.name(), Why: fmt.Sprintf(format, args...), drop: true}
	}
	why := "contained in " + c.base.Name
	switch {
	case b.Merged && b.Ahead == 0 && c.empty[l.key]:
		why = "no commits of its own"
	case b.Merged && b.Ahead > 0:
		why = c.base.Name + " has its changes; it was at " + screen.ShortSHA(b.Tip)
	}
	lost, err := c.lost(ctx, b)
	if err != nil && !c.discard {
		return keep("%v", err)
	}
	switch nowhere := b.Tip != "" && !b.Merged; {
	case c.discard:
		why = "discarded"
		if b.Tip != "" {
			why += "; it was at " + screen.ShortSHA(b.Tip)
		}
		if b.Name == "" && b.ContainedIn != "" {
			why += "; its commits stay on branch " + b.ContainedIn
		}
	case nowhere && b.Name != "":
		return keep("%s not in %s: %s", screen.Plural(b.Ahead, "commit"), c.base.Name, screen.ShortSHA(b.Tip))
	case nowhere && b.ContainedIn == "":
		return keep("%s not in %s, on no branch: %s", screen.Plural(b.Ahead, "commit"), c.base.Name, screen.ShortSHA(b.Tip))
	case lost != "":
		return keep("it has lost the commits of its last run, %s; `ralph show %s` says how to bring them back", screen.ShortSHA(lost), l.key)
	case b.WIP != "" && !b.Stale:
		return keep("uncommitted changes saved: %s", screen.ShortSHA(b.WIP))
	case nowhere:
		why = fmt.Sprintf("its commits stay on branch %s; ralph's own records are removed", b.ContainedIn)
	}
	switch {
	case b.WIP == "":
	case b.Stale:
		why += "; changes saved before its last commits: " + screen.ShortSHA(b.WIP)
	default:
		why += "; its saved changes: " + screen.ShortSHA(b.WIP)
	}
	if !c.dry {
		if err := c.p.Repo.Drop(ctx, l.key, b.Tip); err != nil {
			return keep("%v", err)
		}
	}
	if b.Merged && b.Name != "" {
		c.gone[b.Name] = b.Tip
	}
	return CleanedData{Issue: l.key, Branch: l.name(), Removed: true, Why: why}
}

// noteOnRemote prints commands that delete the removed branches on the remote, too, where they have not moved. It only proposes
// them: a request may need the branch, or the remote's base may lack the commits.
func (c *cleaner) noteOnRemote(ctx context.Context, ui *screen.Printer) {
	remote := c.p.Repo.Remote()
	if remote == "" || len(c.gone) == 0 {
		return
	}
	there, err := c.p.Repo.RemoteBranches(ctx, c.p.BranchPrefix)
	if err != nil {
		c.p.Log.Debug("branches on the remote not listed", "error", err)
	}
	head, when := "the branches are still on "+remote+"; once ", c.base.Name+" is pushed and "
	if strings.HasPrefix(c.base.Name, remote+"/") {
		when = ""
	}
	for _, name := range slices.Sorted(maps.Keys(c.gone)) {
		tip := c.gone[name]
		if there[git.Heads+name] != tip {
			continue
		}
		if head != "" {
			ui.Note("%s", screen.CleanLine(head+when+"no request needs them, delete them there:"))
			head = ""
		}
		lease := git.Quote("--force-with-lease=" + git.Heads + name + ":" + tip)
		ui.Note("  git push %s %s --delete %s", lease, git.Quote(remote), git.Quote(git.Heads+name))
	}
}
