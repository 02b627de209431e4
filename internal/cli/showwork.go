package cli

import (
	"context"
	"fmt"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/worktree"
)

// workData is where the work on an issue is now, and what to type next. Fields are only ever added.
type workData struct {
	Branch      string   `json:"branch"` // empty when no branch of ralph's is left
	Base        string   `json:"base"`
	Ahead       int      `json:"ahead"` // commits that the base has not
	Merged      bool     `json:"merged"`
	Uncommitted string   `json:"uncommitted,omitempty"` // the commit that holds saved changes
	Worktree    string   `json:"worktree,omitempty"`
	Next        []string `json:"next"`
	tip         string
	running     bool
}

// shownRun is what `ralph show --json` prints of a run; Now is the latest one's.
type shownRun struct {
	runState
	Now *workData `json:"now,omitempty"`
}

// work looks where the work of a run, the latest of its issue, is.
func (p *parts) work(ctx context.Context, s runState) (workData, error) {
	base, err := p.base(ctx)
	if err != nil {
		return workData{}, err
	}
	branches, err := p.repo.Branches(ctx, base)
	if err != nil {
		return workData{}, err
	}
	var at worktree.Branch
	for _, b := range branches {
		if b.Key == s.Key {
			at = b
		}
	}
	return workData{
		Branch: at.Name, Base: base.Name, Ahead: at.Ahead, Merged: at.Merged, Uncommitted: at.WIP, Worktree: at.Tree,
		Next: nextSteps(s, at, base), tip: at.Tip, running: s.State == "running",
	}, nil
}

// showWork prints where the work is and what to do with it.
func (a *app) showWork(w workData) {
	a.ui.printf("\n%s\n", a.ui.paint(bold, "Now"))
	switch {
	case w.running && (w.tip == "" || w.Merged):
		a.ui.printf("  the run is on; none of its commits has been taken back yet\n")
	case w.tip == "":
		a.ui.printf("  no branch of ralph's is left\n")
	case w.Merged:
		a.ui.printf("  %s is contained in %s\n", cleanLine(w.Branch), cleanLine(w.Base))
	default:
		a.ui.printf("  %s has %s that %s has not\n", cleanLine(w.Branch), plural(w.Ahead, "commit"), cleanLine(w.Base))
	}
	if w.Uncommitted != "" {
		a.ui.printf("  uncommitted changes are saved: git show %s\n", shortSHA(w.Uncommitted))
	}
	if w.Worktree != "" {
		a.ui.printf("  worktree: %s\n", cleanLine(w.Worktree))
	}
	for _, next := range w.Next {
		a.ui.printf("  next: %s\n", cleanLine(next))
	}
}

func nextSteps(s runState, b worktree.Branch, base worktree.Base) []string {
	var next []string
	if b.Tip != "" && !b.Merged {
		next = append(next, fmt.Sprintf("git diff %s...%s", base.Name, b.Name))
	}
	switch {
	case s.State == "running":
		return []string{"ralph logs -f " + s.Key, "ralph stop " + s.Key}
	case s.State == "unfinished":
		return append(next, "ralph work") // goes on from there
	case s.Verdict.Outcome == pool.Succeeded && b.Tip != "" && !b.Merged:
		return append(next, "git merge "+b.Name)
	case s.Verdict.Outcome == pool.Succeeded:
		return append(next, "ralph clean")
	}
	return append(next, "ralph logs "+s.Key, "ralph work "+s.Key)
}
