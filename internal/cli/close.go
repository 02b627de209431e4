package cli

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

func newCloseCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "close KEY", Short: "Close an issue",
		Long: "Close an issue, and take off the labels that ralph has put on. A run that is on ends, and its work is kept:\n" +
			"at once on this host, within 30 seconds elsewhere.",
	}
	return a.setsState(cmd, "closed", func(i tracker.Issue) bool { return !i.Open }, tracker.Change{Close: true})
}

func newReopenCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "reopen KEY", Short: "Open an issue again",
		Long: "Open an issue again. `ralph retry KEY` then has it worked: the pick-up label goes with a success.",
	}
	cmd = a.setsState(cmd, "open", func(i tracker.Issue) bool { return i.Open }, tracker.Change{Reopen: true})
	cmd.ValidArgsFunction = a.completeClosed
	return cmd
}

// setsState makes cmd a command that closes or opens an issue.
func (a *app) setsState(cmd *cobra.Command, state string, already func(tracker.Issue) bool, change tracker.Change) *cobra.Command {
	cmd.GroupID, cmd.Example = groupWork, "  ralph "+cmd.Name()+" fix-login"
	a.onIssue(cmd, func(ctx context.Context, p *parts, issue tracker.Issue) error {
		name := screen.CleanLine(p.names(ctx)(issue.Key))
		if already(issue) {
			a.ui.Printf("%s is %s already.\n", name, state)
			return nil
		}
		l := p.labels()
		for _, own := range []string{l.InReview, l.NeedsHuman, l.NeedsInfo, l.Claimed, l.Failed} {
			if own != "" {
				change.RemoveLabels = append(change.RemoveLabels, own)
			}
		}
		if err := p.tracker.Change(ctx, issue.Key, change); err != nil {
			return err
		}
		a.ui.Printf("%s is %s.\n", name, state)
		if change.Reopen {
			a.ui.Note("`ralph retry %s` has it worked again", name)
			return nil
		}
		runs, err := p.journal.Find(ctx, journal.Query{Key: issue.Key})
		if err != nil {
			return err
		}
		switch run, err := requestStop(runs); {
		case errors.Is(err, fs.ErrNotExist): // it has just been claimed
			a.ui.Printf("Run %s ends within 30 seconds.\n", run)
		case err != nil:
			return err
		case run != "":
			a.ui.Printf("Asked run %s to end. `ralph logs -f %s` shows how it goes.\n", run, name)
		}
		return nil
	})
	a.bind(cmd, config.ForIssue)
	return cmd
}
