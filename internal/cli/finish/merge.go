// Package finish has the commands for finished work: `ralph diff`, `tree`, `open`, `verify` and `merge`.
package finish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/progress"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

const mergeLong = `Merge an issue's branch into the base branch: rebase it, run the gate on a clean checkout, move the base
branch, and close the issue. A checkout of the base branch moves with it and keeps your changes to other files; changes and
untracked files in the way stop the merge. This is a run without an agent, under the issue's claim, with the usual policy,
gate and canary. The gate is not run again if it passed on the same commit and base within a day.
Changes to tests and other checks do not stop the merge: you have decided.

Several branches are merged in one step, after one run of the gate on all of them. If the gate fails, ralph tries halves
until it has found the branch that fails; that one stays, and the others are merged. A branch that changes its own checks is
merged alone, after the others.

--all skips branches that a review has not accepted, branches that change their own checks, branches that conflicted and have
not changed since, and issues that were edited since their run began. Look at these and name them.`

// mergeFlags are the flags that select branches to merge.
type mergeFlags struct{ all, unfinished, edited bool }

// NewMerge returns `ralph merge`.
func NewMerge(a *compose.App) *cobra.Command {
	var o mergeFlags
	cmd := &cobra.Command{
		Use:               "merge KEY...",
		Short:             "Check an issue's branch once more, merge it, and close the issue",
		Long:              mergeLong,
		Example:           "  ralph diff fix-login\n  ralph merge fix-login\n  ralph merge --all",
		GroupID:           compose.GroupWork,
		ValidArgsFunction: a.CompleteUnmerged,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.all && len(args) > 0:
				return exit.Usagef("KEYs and --all exclude each other; choose one")
			case !o.all && len(args) == 0:
				return exit.Usagef("name the issues whose branches to merge, or give --all")
			}
			return nil
		},
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return merge(ctx, a, p, args, o)
		}),
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "merge the branches of all issues in review, except those that a person has to merge")
	cmd.Flags().BoolVar(&o.unfinished, "unfinished", false, "also merge commits of a run that ended before its agent was done")
	cmd.Flags().BoolVar(&o.edited, "edited", false, "also merge branches whose issue has changed since its run began")
	a.Bind(cmd, keys.ForMerge)
	return cmd
}

func merge(ctx context.Context, a *compose.App, p *compose.Parts, args []string, o mergeFlags) error {
	var keys []string
	for _, typed := range args {
		issue, err := p.Issue(ctx, typed)
		if err != nil {
			return err
		}
		if err := done(ctx, p, typed, issue, o); err != nil {
			return err
		}
		if !slices.Contains(keys, issue.Key) {
			keys = append(keys, issue.Key)
			warnOfSubmodules(ctx, a, p, issue.Key, p.Names(ctx)(issue.Key))
		}
	}
	worker, err := merger(ctx, a, p)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(a.Hard, worker.Kill)
	defer stop()
	unseen := error(nil)
	if o.all {
		if keys, err = worker.Unmerged(ctx); err == nil {
			keys, unseen, err = seen(ctx, a, p, keys)
		}
		if err != nil {
			return err
		}
	}
	switch len(keys) {
	case 0:
		if unseen == nil {
			a.UI.Printf("No issue in review has unmerged commits.\n")
		}
	case 1:
		r, failed := worker.Merge(ctx, keys[0])
		r.Issue.Key = keys[0]
		err = mergedOne(ctx, a, p, p.Names(ctx), r, failed)
	default:
		err = mergedAll(ctx, a, p, p.Names(ctx), worker.MergeAll(ctx, keys))
	}
	if err == nil && len(keys) > 0 {
		work.NoteUnpushed(ctx, a, p)
		noteBranches(ctx, a, p, keys)
	}
	return cmp.Or(err, unseen)
}

// noteBranches names the command that removes the merged branches, if one is left.
func noteBranches(ctx context.Context, a *compose.App, p *compose.Parts, keys []string) {
	var names []string
	for _, key := range keys {
		names = append(names, git.Heads+p.BranchPrefix+key)
	}
	if left, err := p.Repo.Git().Refs(ctx, names...); err != nil || len(left) > 0 {
		a.UI.Note("to remove the merged branches: ralph clean")
	}
}

// done refuses an issue that is being worked, whose agent was not done, or that has changed since its run began.
func done(ctx context.Context, p *compose.Parts, name string, issue tracker.Issue, o mergeFlags) error {
	runs, err := p.Journal.Find(ctx, journal.Query{Key: issue.Key, Kind: journal.KindIssue})
	if err != nil {
		return err
	}
	if len(runs) > 0 && look.StateOf(runs[len(runs)-1]).LeftMerge() {
		return nil // an earlier merge was cut off, and goes on
	}
	runs = slices.DeleteFunc(runs, func(r journal.Record) bool { return r.Settings.Attended })
	if len(runs) == 0 {
		return nil
	}
	last := look.StateOf(runs[len(runs)-1])
	name = compose.InCommand(name, issue.Key)
	if last.State == "running" {
		return &exit.Error{
			Status: exit.Incomplete, Err: fmt.Errorf("%s is being worked", name),
			Hint: fmt.Sprintf("`ralph logs -f %s` follows it; `ralph stop %[1]s` ends it", name),
		}
	}
	if err := obstacles(name, unfinished(runs), last.Differs(issue), issue.Open, o); err != nil && hasCommits(ctx, p, issue.Key) {
		return err
	}
	return nil // without commits the merge says so
}

// obstacles returns the error that names everything that keeps the commits from being merged, with one command for all of it.
func obstacles(name string, unfinished, edited, open bool, o mergeFlags) error {
	why, flags, next := []string{}, []string{}, ""
	if unfinished {
		flags, next = append(flags, "--unfinished"), "`ralph work %s` continues; "
		if !o.unfinished {
			why = append(why, "its last run ended before its agent was done")
		}
	}
	if edited {
		flags, next = append(flags, "--edited"), "`ralph retry %s` works it again with the new text; "
		if !o.edited {
			why = append(why, report.Reason(journal.Reason{Code: journal.ReasonEdited}))
		}
	}
	if len(why) == 0 {
		return nil
	}
	if !open {
		why, next = append([]string{"it is closed"}, why...), "`ralph reopen %s` reopens it; then "
	}
	return &exit.Error{
		Status: exit.Incomplete, Err: fmt.Errorf("%s is not merged: %s", name, strings.Join(why, "; ")),
		Hint: fmt.Sprintf(next, name) + fmt.Sprintf("`ralph merge %s %s` merges the commits as they are", strings.Join(flags, " "), name),
	}
}

// hasCommits reports whether the issue's branch may have commits that the base lacks.
func hasCommits(ctx context.Context, p *compose.Parts, key string) bool {
	w, err := look.LeftWork(ctx, p, key)
	return w.Ahead > 0 || err != nil && (w.Base == "" || w.Tip != "") // without a base, git could not say
}

// unfinished reports whether the last run in which an agent worked ended before the agent was done.
func unfinished(runs []journal.Record) bool {
	for _, r := range slices.Backward(runs) {
		switch {
		case r.SaidDone():
			return false
		case !r.Ended.IsZero() && r.Facts.Stop == "" && len(r.Facts.Iterations) == 0: // no agent worked
			continue
		}
		return true
	}
	return false
}

// seen leaves out issues whose last success was left to a person, who has to name them; left is the error that counts them.
func seen(ctx context.Context, a *compose.App, p *compose.Parts, keys []string) (rest []string, left, err error) {
	for _, key := range keys {
		runs, err := p.Journal.Find(ctx, journal.Query{Key: key, Kind: journal.KindIssue})
		if err != nil {
			return nil, nil, err
		}
		var last journal.Record
		for _, r := range runs {
			if r.Verdict.Outcome == journal.Succeeded {
				last = r
			}
		}
		reason, flag := last.Verdict.Reason, ""
		conflict, err := conflicting(ctx, p, runs)
		if err != nil {
			return nil, nil, err
		}
		if issue, err := p.Backlog.Get(ctx, key); err != nil {
			a.UI.Warn(fmt.Sprintf("%s is skipped: %s", p.Names(ctx)(key), err))
			continue
		} else if last.Differs(issue) {
			reason, flag = journal.Reason{Code: journal.ReasonEdited}, "--edited "
		} else if conflict.Code != "" {
			reason = conflict
		} else if last.ID == "" || last.Verdict.Unattended() {
			rest = append(rest, key)
			continue
		}
		name := p.Names(ctx)(key)
		a.UI.Warn(fmt.Sprintf("%s is not merged: %s; look with `ralph diff %[3]s`, and merge it with `ralph merge %[4]s%[3]s`",
			name, report.Reason(reason), compose.InCommand(name, key), flag))
	}
	if n := len(keys) - len(rest); n > 0 {
		left = exit.Incompletef("%d of %s not merged: a person has to decide", n, screen.Plural(len(keys), "issue"))
	}
	return rest, left, nil
}

// conflicting returns why the latest run could not rebase the branch, if nobody has changed the branch since; zero: no conflict.
func conflicting(ctx context.Context, p *compose.Parts, runs []journal.Record) (why journal.Reason, err error) {
	if len(runs) == 0 || runs[len(runs)-1].Verdict.Reason.Code != journal.ReasonConflict {
		return why, nil
	}
	last := runs[len(runs)-1]
	refs, err := p.Repo.Git().Refs(ctx, git.Heads+last.Branch)
	if refs[git.Heads+last.Branch] == last.Tip {
		why = last.Verdict.Reason
	}
	return why, err
}

// merger returns the worker that merges branches into the base.
func merger(ctx context.Context, a *compose.App, p *compose.Parts) (*pool.Worker, error) {
	if err := p.Repo.CheckNoOperation(ctx); err != nil { // publishing would fail, and leave the run to the next sweep
		return nil, err
	}
	c, err := a.PoolConfig(ctx, p)
	if err != nil {
		return nil, err
	}
	base, err := p.ForeignBase(ctx)
	if err != nil {
		return nil, err
	}
	if err := compose.NeedsBranch(base, "a merge"); err != nil {
		return nil, err
	}
	if err := c.Run.Sandboxes.Check(ctx); err != nil {
		return nil, work.NoSandbox(ctx, c.Run.Sandboxes.Name(), err)
	}
	view := &progress.View{UI: a.UI, Started: time.Now(), Name: p.Names(ctx), State: p.State}
	c.Observe, c.Run.Emit = func(e journal.Event) { view.Event(progress.InNames(view.Name, e)) }, a.Host.Observe
	worker, err := pool.NewWorker(c)
	if err != nil {
		return nil, &exit.Error{Status: exit.Usage, Err: err}
	}
	return worker, nil
}

// mergedOne reports the result of one merge.
func mergedOne(ctx context.Context, a *compose.App, p *compose.Parts, names func(key string) string, r pool.Result, err error) error {
	key := r.Issue.Key
	name := names(key)
	switch v := r.Record.Verdict; {
	case exit.IsAway(errors.Join(err, r.Unavailable)):
		return &exit.Error{Status: exit.Parked, Err: cmp.Or(err, r.Unavailable)}
	case ctx.Err() != nil && r.Record.Published == "" && len(r.Finished) == 0:
		return notMerged([]string{compose.InCommand(name, key)})
	case errors.Is(err, publish.ErrNothing):
		return nothing(ctx, a, p, name, key, err)
	case errors.Is(err, worktree.ErrDirty): // nothing of ralph has failed
		return &exit.Error{Status: exit.Incomplete, Err: err}
	case err != nil:
		return err
	case r.Skip != nil && len(r.Finished) == 0:
		return exit.Incompletef("%s is not merged: %s", name, hint.SkipReason(compose.InCommand(name, key), *r.Skip))
	case r.Skip != nil: // an earlier run had not ended, and has now
		return merged(a, name, r.Finished[len(r.Finished)-1])
	case r.Unavailable != nil && v.Outcome.Unavailable():
		return &exit.Error{Status: exit.Parked, Err: r.Unavailable}
	}
	return merged(a, name, r.Record)
}

// nothing reports that there is nothing to merge. That is a success if the issue is merged or closed already.
func nothing(ctx context.Context, a *compose.App, p *compose.Parts, name, key string, why error) error {
	worked, there := isMerged(ctx, p, key)
	issue, err := p.Backlog.Get(ctx, key)
	next := "`ralph show %s` says how its last run ended"
	switch {
	case there:
		a.UI.Printf("%s is merged already.\n", screen.CleanLine(name))
		return nil
	case err == nil && !issue.Open:
		a.UI.Printf("%s is closed already, with nothing to merge.\n", screen.CleanLine(name))
		return nil
	case !worked:
		next = "work it first with: ralph work %s"
	}
	return &exit.Error{
		Status: exit.Incomplete,
		Err:    fmt.Errorf("%s is not merged: %w", name, why),
		Hint:   fmt.Sprintf(next, compose.InCommand(name, key)),
	}
}

// isMerged reports whether the issue was worked, and whether the base contains its commits. An issue without commits is not merged.
func isMerged(ctx context.Context, p *compose.Parts, key string) (worked, there bool) {
	runs, err := p.Journal.Find(ctx, journal.Query{Key: key, Kind: journal.KindIssue})
	if err != nil || len(runs) == 0 {
		return false, false
	}
	last := []look.RunState{look.Standing(look.StatesOf(runs))}
	if base, err := p.FindBase(ctx); err != nil || base.Name != last[0].Base {
		return true, false
	}
	look.MarkMerged(ctx, p, last)
	return true, last[0].State == "merged"
}

// mergedAll reports the results of several merges. If none was merged, the last error decides the exit status.
func mergedAll(ctx context.Context, a *compose.App, p *compose.Parts, names func(key string) string, results []pool.Result) error {
	left, last, undone := 0, error(nil), []string(nil)
	for _, r := range results {
		err := mergedOne(ctx, a, p, names, r, r.Err)
		if err == nil {
			continue
		}
		name := names(r.Issue.Key)
		left, last, undone = left+1, err, append(undone, compose.InCommand(name, r.Issue.Key))
		if text := err.Error(); strings.HasPrefix(text, name+" ") {
			a.UI.Warn(text)
		} else if !errors.Is(err, exit.ErrInterrupted) {
			a.UI.Warn(name + " is not merged: " + text)
		}
	}
	switch {
	case left == 0:
		return nil
	case ctx.Err() != nil:
		return notMerged(undone)
	}
	status, next := exit.Incomplete, "`ralph show KEY` says what to type next"
	if e := (*exit.Error)(nil); errors.As(last, &e) && left == len(results) {
		status, next = e.Status, e.Hint
	}
	return &exit.Error{Status: status, Hint: next, Err: fmt.Errorf("%d of %s not merged", left, screen.Plural(len(results), "issue"))}
}

// notMerged returns the error of an interrupted merge, with the names of the issues that are not merged.
func notMerged(names []string) error {
	return fmt.Errorf("%w; not merged: %s; to try again, repeat the command", exit.ErrInterrupted, strings.Join(names, " "))
}

// merged reports how a merge ended.
func merged(a *compose.App, name string, r journal.Record) error {
	if !r.Merged() {
		return &exit.Error{
			Status: exit.Incomplete, Hint: "`ralph show " + compose.InCommand(name, r.Key) + "` says what to type next",
			Err: fmt.Errorf("%s is not merged: %s: %s", name, look.OutcomeOf(r), report.Reason(r.Verdict.Reason)),
		}
	}
	a.UI.Printf("%s: %s, and the issue is closed\n", screen.CleanLine(name), screen.CleanLine(r.Published))
	if look.Ungated(r) {
		a.UI.Warn(screen.CleanLine(name) + " was merged without a gate; " + hint.GateFix)
	}
	return nil
}
