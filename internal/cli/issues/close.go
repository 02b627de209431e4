package issues

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// NewClose returns `ralph close`.
func NewClose(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "close KEY...", Short: "Close issues",
		Long: "Close an issue, and remove the labels that show its state, such as needs-human and in-review. The pick-up label stays. A\n" +
			"current run of the issue ends, at once on this host and within 30 seconds elsewhere, and its work is kept.",
	}
	return setsState(a, cmd, "closed", func(i tracker.Issue) bool { return !i.Open }, tracker.Change{Close: true})
}

// NewReopen returns `ralph reopen`.
func NewReopen(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reopen KEY...", Short: "Open issues again",
		Long: "Open an issue again, and remove the labels that show its state, such as needs-human. If it has the pick-up label, sweeps work\n" +
			"it again. A success has removed that label; `ralph retry KEY` adds it.",
	}
	cmd = setsState(a, cmd, "open", func(i tracker.Issue) bool { return i.Open }, tracker.Change{Reopen: true})
	cmd.ValidArgsFunction = a.CompleteClosed
	return cmd
}

// setsState makes cmd a command that closes or reopens an issue.
func setsState(a *compose.App, cmd *cobra.Command, state string, already func(tracker.Issue) bool, change tracker.Change) *cobra.Command {
	cmd.GroupID, cmd.Example = compose.GroupWork, "  ralph "+cmd.Name()+" fix-login"
	onEach(a, cmd, func(ctx context.Context, p *compose.Parts, issue tracker.Issue) error {
		name := screen.CleanLine(p.Names(ctx)(issue.Key))
		if already(issue) {
			a.UI.Printf("%s is %s already.\n", name, state)
			return nil
		}
		l, change := p.StateLabels(), change // a copy for each call
		for _, own := range []string{l.InReview, l.NeedsHuman, l.NeedsInfo, l.Claimed, l.Failed} {
			if own != "" {
				change.RemoveLabels = append(change.RemoveLabels, own)
			}
		}
		if err := p.Backlog.Change(ctx, issue.Key, change); err != nil {
			return err
		}
		a.UI.Printf("%s is %s.\n", name, state)
		if change.Reopen {
			next := "`ralph retry %s` works it again"
			if !slices.ContainsFunc(p.Labels, func(label string) bool { return !issue.HasLabel(label) }) {
				next = "it has the pick-up label, so the next `ralph work` works it; at once: `ralph work %s`"
			}
			a.UI.Note(next, compose.InCommand(name, issue.Key))
			return nil
		}
		runs, err := p.Journal.Find(ctx, journal.Query{Key: issue.Key})
		if err != nil {
			return err
		}
		switch run, err := requestStop(runs); {
		case err != nil:
			return err
		case run != "":
			a.UI.Printf("Asked run %s to end. `ralph logs -f %s` follows it.\n", run, name)
		}
		return nil
	})
	a.Bind(cmd, keys.ForIssue)
	return cmd
}
