package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/base"
	"github.com/ralph-pool/ralph/worktree/commits"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/span"
)

// WorkData says where the work on an issue is now, and what to type next. Fields are only ever added.
type WorkData struct {
	Branch      string           `json:"branch"` // empty: ralph has no branch
	Base        string           `json:"base"`
	Ahead       int              `json:"ahead"`             // commits that the base lacks
	Commits     []commits.Commit `json:"commits"`           // these commits, oldest first; null if they are unreadable
	Changes     *commits.Stat    `json:"changes,omitempty"` // of these commits
	Merged      bool             `json:"merged"`
	Uncommitted string           `json:"uncommitted,omitempty"` // the commit of saved changes
	Worktree    string           `json:"worktree,omitempty"`
	Lost        string           `json:"lost,omitempty"` // the tip of the latest successful run, if its branch has lost all commits
	Next        []string         `json:"next"`
	Tip, Begin  string           `json:"-"` // commits
	Was         string           `json:"-"` // the command that shows the changes of commits that the base contains
	Running     bool             `json:"-"`
	Empty       bool             `json:"-"` // the run made no commits
	Gone        string           `json:"-"` // says that the branch is gone, and what is left; empty: it exists
}

// ShownRunData is one run of `ralph show --json`. Only the latest one has Now.
type ShownRunData struct {
	RunState
	Now *WorkData `json:"now,omitempty"`
}

// workOf finds the work of the issue whose latest run is s.
func workOf(ctx context.Context, p *compose.Parts, s RunState) (WorkData, error) {
	on, err := p.FindBase(ctx)
	if err == nil && s.Base != "" && base.Foreign(on, p.Base, p.BranchPrefix) != nil { // a run's branch is checked out to be looked at
		on, err = p.Repo.Base(ctx, s.Base)
	}
	if err != nil {
		return WorkData{}, err
	}
	issue := present(ctx, p, s)
	if s.Kind == journal.KindIssue && !issue.Open {
		on, _ = OnRemote(ctx, p, on)
	}
	on = begunOn(ctx, p, on, s.Record.State)
	branches, err := p.Repo.Branches(ctx, on)
	if err != nil {
		return WorkData{}, err
	}
	var at worktree.Branch
	for _, b := range branches {
		if b.Key == s.Key {
			at = b
		}
	}
	if at.Name == "" && at.Tip != "" { // the branch has another prefix, or was deleted
		has, err := hasBranch(ctx, p, s.Branch)
		if err != nil {
			return WorkData{}, err
		}
		if has {
			at.Name = s.Branch
		}
	}
	w := WorkData{
		Branch: at.Name, Base: on.Name, Ahead: at.Ahead, Merged: at.Merged, Uncommitted: at.WIP, Worktree: at.Tree,
		Next: nextSteps(s, at, issue), Tip: at.Tip, Begin: on.Commit, Running: s.State == "running", Empty: s.Commits == 0,
	}
	read(ctx, p, on, &w)
	return w, nil
}

func hasBranch(ctx context.Context, p *compose.Parts, name string) (bool, error) {
	if name == "" {
		return false, nil
	}
	return p.Repo.Git().Test(ctx, "show-ref", "--verify", "--quiet", git.Heads+name)
}

// present returns the run's issue as it is now: closed if it is gone, open if the tracker fails.
func present(ctx context.Context, p *compose.Parts, s RunState) tracker.Issue {
	issue := tracker.Issue{Key: s.Key, Open: true}
	if s.Kind != journal.KindIssue {
		return issue
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got, err := p.Backlog.Get(ctx, s.Key)
	switch {
	case err == nil:
		return got
	case errors.Is(err, tracker.ErrNotFound):
		issue.Open = false
	default:
		p.Log.Debug("issue not read", "key", s.Key, "error", err)
	}
	return issue
}

// findLost finds commits of the latest run that its branch has lost: somebody has moved it back, or the end of a rebase has.
func (w *WorkData) findLost(ctx context.Context, p *compose.Parts, runs journal.History) {
	tip := runs.LostTip(w.Tip)
	if w.Branch == "" || w.Ahead > 0 || w.Running || tip == "" {
		return
	}
	missing, err := span.Missing(ctx, p.Repo.Git(), w.Begin, tip)
	if err != nil {
		p.Log.Debug("lost commits not looked for", "error", err)
	}
	if missing {
		w.Lost = tip
		w.Next = []string{report.GitCommand("branch -f", w.Branch) + " " + screen.ShortSHA(tip), "ralph merge " + runs[0].Key}
	}
}

// unimported reports that the run is on and has no imported commits yet.
func (w WorkData) unimported() bool { return w.Running && (w.Tip == "" || w.Ahead == 0) }

// Range returns the arguments of `git diff` that show the work: since it left the base or, without a common history (related is
// false), against the base.
func (w WorkData) Range(ctx context.Context, p *compose.Parts) (spec string, related bool, err error) {
	dots := "..."
	if related, err = p.Repo.Spans().Related(ctx, w.Begin, w.Tip); !related {
		dots = ".."
	}
	return w.Begin + dots + w.Tip, related, err
}

// read fills in commits and changes, as far as go-git can read them.
func read(ctx context.Context, p *compose.Parts, base worktree.Base, w *WorkData) {
	if w.Tip == "" || w.Ahead == 0 {
		return
	}
	r, err := commits.Open(p.Top)
	if err == nil {
		w.Commits, err = r.Commits(ctx, base.Commit, w.Tip)
	}
	if err == nil {
		var s commits.Stat
		if s, err = r.Stat(ctx, base.Commit, w.Tip); err == nil {
			w.Changes = &s
		}
	}
	w.redact(p.Secrets)
	if err != nil {
		p.Log.Debug("commits not read", "error", err)
	}
}

// redact replaces texts with secrets in what the agent has committed.
func (w *WorkData) redact(s *redact.Secrets) {
	for i := range w.Commits {
		c := &w.Commits[i]
		c.Subject, c.Author = s.Clean(c.Subject), s.Clean(c.Author)
	}
	if w.Changes != nil {
		for i := range w.Changes.Files {
			f := &w.Changes.Files[i]
			f.Path = s.Clean(f.Path)
		}
	}
}

// showWork prints where the work is, and what to do next.
func showWork(a *compose.App, w WorkData) {
	a.UI.Printf("\n%s\n", a.UI.Paint(screen.Bold, "Now"))
	name := screen.CleanLine(cmp.Or(w.Branch, screen.ShortSHA(w.Tip)))
	switch {
	case w.unimported():
		a.UI.Printf("  running; no commits imported yet\n")
	case w.Tip == "" && w.Empty: // there was none
		a.UI.Printf("  no branch\n")
	case w.Tip == "":
		a.UI.Printf("  no branch left\n")
	case w.Merged && w.Ahead > 0:
		a.UI.Printf("  %s has the changes of %s\n", screen.CleanLine(w.Base), name)
	case w.Merged && w.Empty: // otherwise people would think that it was merged
		a.UI.Printf("  %s has no commits of its own\n", name)
	case w.Merged:
		a.UI.Printf("  %s is contained in %s\n", name, screen.CleanLine(w.Base))
	default:
		a.UI.Printf("  %s has %s that %s lacks\n", name, screen.Plural(w.Ahead, "commit"), screen.CleanLine(w.Base))
	}
	if w.Lost != "" {
		a.UI.Printf("  it has lost the commits of the last successful run: %s\n", screen.ShortSHA(w.Lost))
	}
	for _, c := range w.Commits {
		a.UI.Printf("  %s  %s\n", screen.ShortSHA(c.SHA), screen.CleanLine(c.Subject))
	}
	if c := w.Changes; c != nil {
		a.UI.Printf("  %s changed, %s added, %s removed\n",
			screen.Plural(len(c.Files), "file"), screen.Plural(c.Insertions, "line"), screen.Plural(c.Deletions, "line"))
	}
	if w.Uncommitted != "" {
		a.UI.Printf("  uncommitted changes are saved: git show %s\n", screen.ShortSHA(w.Uncommitted))
	}
	if w.Worktree != "" {
		a.UI.Printf("  worktree: %s\n", screen.CleanLine(w.Worktree))
	}
	for _, next := range w.Next {
		a.UI.Printf("  next: %s\n", screen.CleanLine(next))
	}
}

func nextSteps(s RunState, b worktree.Branch, issue tracker.Issue) []string {
	var next []string
	if b.Tip != "" && !b.Merged {
		next = append(next, "ralph diff "+s.Key)
	}
	switch {
	case s.State == "running":
		return []string{"ralph logs -f " + s.Key, "ralph stop " + s.Key}
	case s.LeftMerge():
		return append(next, "ralph merge "+s.Key)
	case s.State == "unfinished" && s.Kind == journal.KindIssue:
		return append(next, "ralph work") // continues the run
	case b.Tip != "" && b.Merged && !issue.Open:
		return []string{"ralph clean"}
	case !issue.Open && b.Tip != "": // ralph neither works nor merges a closed issue
		return append(next, report.GitCommand("merge", cmp.Or(b.Name, b.Tip))+
			"  # to keep it", "ralph clean --discard "+s.Key+"  # to delete it")
	case !issue.Open && s.Verdict.Outcome == journal.Succeeded: // merged and cleaned up
		return []string{}
	case !issue.Open:
		return []string{"ralph logs " + s.Key}
	case s.Verdict.Outcome == journal.Succeeded && b.Tip != "" && !b.Merged:
		switch {
		case s.Request.URL != "": // people review and merge it there
			return append(next, "ralph open "+s.Key)
		case s.Differs(issue):
			return append(next, "ralph merge --edited "+s.Key+"  # if the work still fits")
		case s.Kind == journal.KindIssue:
			return append(next, "ralph merge "+s.Key)
		}
		return append(next, report.GitCommand("merge", cmp.Or(b.Name, b.Tip)))
	case s.Verdict.Outcome == journal.Succeeded:
		return append(next, "ralph clean")
	}
	again, why := "ralph work "+s.Key, s.Verdict.Reason
	switch {
	case s.Kind != journal.KindIssue: // no sweep works it again
		return append(next, "ralph logs "+s.Key)
	case s.Verdict.Outcome == journal.NeedsInfo:
		return append(next, "ralph edit "+s.Key+"  # answer there", again)
	case s.Verdict.Outcome == journal.NoChange:
		return append(next, "ralph close "+s.Key+"  # if you agree", "ralph edit "+s.Key+"  # if not, add details; then "+again)
	case why.Code == journal.ReasonPolicy: // its detail names files of the agent, so no command fits
		return append(next, report.GitCommand("merge", cmp.Or(b.Name, b.Tip))+"  # if this is right",
			"ralph retry --fresh "+s.Key+"  # if not; say in the issue what not to touch")
	case why.Code == journal.ReasonUndone:
		return append(next, "ralph close "+s.Key+"  # once nothing is missing")
	case why.Code == journal.ReasonPublish && s.Settings.Publish == journal.PublishMerge:
		return append(next, "ralph merge "+s.Key)
	case why.Code == journal.ReasonTestsNotRun:
		return append(next, "ralph logs "+s.Key, again+"  # first "+hint.RetestFix)
	case why.Code == journal.ReasonConflict && s.Verdict.Final && b.Name != "": // until then, the next attempt may solve it
		next = append(next, report.SolveCommands(s.Record, b.Name)...) // they leave the user on that branch
		return append(next, report.GitCommand("switch", s.Base), "ralph merge "+s.Key)
	}
	if s.Verdict.RetryAt.Before(time.Now()) {
		s.Verdict.RetryAt = time.Time{}
	}
	if text := report.ByItself(s.Record); text != "" && !s.Ended.IsZero() {
		again += "  # at once; " + text
	}
	return append(next, "ralph logs "+s.Key, again)
}

// LeftWork finds the work of an issue's runs. Without any it returns an error.
func LeftWork(ctx context.Context, p *compose.Parts, key string) (WorkData, error) {
	runs, err := p.RunsOf(ctx, key)
	if err != nil {
		return WorkData{}, err
	}
	last := Standing(StatesOf(runs))
	w, err := workOf(ctx, p, last)
	if err != nil {
		return w, err
	}
	if w.Tip == "" && last.Tip != "" && !w.Running && !w.Empty {
		w.Gone = fmt.Sprintf("branch %s is gone; run %s left it at %s", last.Branch, last.ID, screen.ShortSHA(last.Tip))
	}
	w.Tip = cmp.Or(w.Tip, last.Tip)
	if w.Tip != "" && w.Ahead == 0 && !w.Running {
		if w.Merged, err = p.Repo.Git().ContainsIfPresent(ctx, w.Begin, w.Tip); err != nil {
			return w, err
		}
		w.Was = report.GitCommand("show", screen.ShortSHA(w.Tip))
		if v := last.Verified; v.Base != "" && v.Tip == w.Tip {
			w.Was = report.GitCommand("diff", screen.ShortSHA(v.Base)+".."+screen.ShortSHA(v.Tip))
		}
	}
	switch {
	case w.unimported():
		err = fmt.Errorf("%s is being worked, with no commits imported yet; follow it with: ralph logs -f %s", key, last.Key)
	case w.Tip == "":
		err = fmt.Errorf("%s: its runs have left no commits", key)
	}
	return w, err
}
