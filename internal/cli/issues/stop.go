package issues

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/fleetdb"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

const stopLong = `End the current run of an issue. The agent gets time to exit, its commits are imported, and the claim is
released. The run does not count as an attempt. The next sweep works the issue again, unless you remove its pick-up label.
Other clones with their own copy of a local backlog skip the issue until it is edited, or until "ralph retry" or "ralph work
KEY" asks for it.

With the database of a fleet, the machine that works the issue ends the run, and removes the label itself.`

// NewStop returns `ralph stop`.
func NewStop(a *compose.App) *cobra.Command {
	var o fleetdb.Member
	cmd := &cobra.Command{
		Use: "stop KEY", Short: "End an issue's run, and keep its work", Long: stopLong,
		Example:     "  ralph stop fix-login\n  ralph stop --database-file ~/.config/ralph/database fix-login",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupWork, Args: exit.OneIssue, ValidArgsFunction: a.CompleteKeys,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return stop(ctx, a, p, o, args[0])
		}),
	}
	o.Flags(cmd)
	a.Bind(cmd, keys.ForIssue)
	return cmd
}

func stop(ctx context.Context, a *compose.App, p *compose.Parts, o fleetdb.Member, key string) error {
	runs, err := p.RunsOf(ctx, key)
	if err != nil && !errors.Is(err, compose.ErrNoRuns) {
		return err
	}
	if run, err := requestStop(runs); run != "" {
		if err == nil {
			a.UI.Printf("Asked run %s to end. `ralph logs -f %s` follows it.\n", run, screen.CleanLine(key))
			if runs[0].Kind == journal.KindIssue && len(p.Labels) > 0 && isOpen(ctx, p, key) {
				a.UI.Note("the next sweep works it again, unless you remove its label %s (ralph edit %s)",
					screen.CleanLine(p.Labels[0]), screen.CleanLine(key))
			}
		}
		return err
	}
	database, name, err := fleetdb.OpenProject(ctx, a, p, o)
	if err != nil {
		return err
	}
	if database != nil {
		defer database.Close()
		stopped, err := database.Stop(ctx, name, p.Key(ctx, key), "")
		if stopped {
			a.UI.Printf("Asked the machine that works %s of %s to end the run. "+
				"It also removes the issue's pick-up label; "+
				"`ralph retry %s` works it again.\n", screen.CleanLine(key), screen.CleanLine(name), screen.CleanLine(key))
		}
		if stopped || err != nil {
			return err
		}
		return exit.Incompletef("%s of %s is not being worked in the fleet; see `ralph fleet status`", key, name)
	}
	if slices.ContainsFunc(runs, func(r journal.Record) bool { return r.Ended.IsZero() && r.Kind == journal.KindIssue }) {
		return exit.Incompletef("%s is not being worked on this host; its run is unfinished: "+
			"`ralph work` continues it, `ralph retry --fresh %s` ends it", key, key)
	}
	return exit.Incompletef("%s is not being worked on this host; see `ralph status`", key)
}

// isOpen reports whether the issue may be open. If the tracker is away it may.
func isOpen(ctx context.Context, p *compose.Parts, key string) bool {
	issue, err := p.Backlog.Get(ctx, p.Key(ctx, key))
	return err != nil || issue.Open
}

// requestStop asks the current run to end, and returns its ID, or "" if no run is on.
func requestStop(runs []journal.Record) (string, error) {
	for _, r := range runs {
		if look.StateOf(r).State == "running" {
			return r.ID, journal.RequestStop(r)
		}
	}
	return "", nil
}
