package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/worktree"
)

// keptWork says what a job or a command has left where, and how to get it. The changes are one commit on what was
// committed last.
func keptWork(commits int, branch, wip string) string {
	var kept []string
	if commits > 0 {
		kept = append(kept, fmt.Sprintf("%s kept on branch %s, get it with: %s", plural(commits, "commit"), branch, report.GitCommand("merge", branch)))
	}
	if wip != "" {
		kept = append(kept, fmt.Sprintf("changes without a commit kept as %s, get them with: git cherry-pick --no-commit --mainline 1 %s",
			shortSHA(wip), shortSHA(wip)))
	}
	return strings.Join(kept, "; ")
}

// sayRecovered says what was imported of a job that had died.
func (a *app) sayRecovered(r journal.Record) {
	kept := keptWork(r.Commits, r.Branch, r.WIP)
	if kept == "" {
		kept = "there was no work to keep"
	} else {
		kept += "; " + dropWith(r.Key)
	}
	a.ui.note("ralph: run %s had died; %s", r.ID, cleanLine(kept))
}

// recoverJobs imports the work of jobs that died, and ends what they left running.
func (a *app) recoverJobs(ctx context.Context, p *parts) error {
	open, err := p.journal.Find(ctx, journal.Query{Open: true})
	if err != nil || !slices.ContainsFunc(open, func(r journal.Record) bool { return r.Kind != journal.KindIssue }) {
		return err
	}
	local := *p
	options := p.repository()
	options.Log = p.log
	if local.repo, err = worktree.Open(ctx, p.top, options); err != nil {
		return err
	}
	c, err := a.runConfig(ctx, &local)
	if err != nil {
		return err
	}
	return job.Recover(ctx, c, a.sayRecovered)
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// outputText is the validated JSON, or the text between the tags.
func outputText(o *loop.OutputValue) string {
	if o.JSON != nil {
		return string(o.JSON)
	}
	return o.Raw
}
