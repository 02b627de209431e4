package progress

import (
	"context"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// NoteRecovered returns a function that prints what was imported of a dead job.
func NoteRecovered(ui *screen.Printer) func(journal.Record) {
	return func(r journal.Record) {
		kept := hint.KeptWork(r.Commits, r.Branch, r.WIP)
		if kept == "" {
			kept = "there was no work to keep"
		} else {
			kept += "; " + hint.DropWith(r.Key)
		}
		ui.Note("ralph: run %s had died; %s", r.ID, screen.CleanLine(kept))
	}
}

// RecoverJobs imports the work of dead jobs, and ends the processes that they left.
func RecoverJobs(ctx context.Context, a *compose.App, p *compose.Parts) error {
	open, err := p.Journal.Find(ctx, journal.Query{Open: true})
	if err != nil || !slices.ContainsFunc(open, func(r journal.Record) bool { return r.Kind != journal.KindIssue }) {
		return err
	}
	local := *p
	if local.Repo, err = worktree.Open(ctx, p.Top, p.Repository()); err != nil {
		return err
	}
	c, err := a.RunConfig(ctx, &local)
	if err != nil {
		return err
	}
	return job.Recover(ctx, c, NoteRecovered(a.UI))
}
