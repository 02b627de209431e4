package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
)

const stopLong = `Ask the ralph that works an issue to end its run. The agent gets time to end, its commits are imported, and the claim
is released. No attempt is used; the next sweep takes the issue up again, unless you take its pick-up label away.

With the database of a fleet, the machine that works the issue is asked, whichever that is.`

func newStopCommand(a *app) *cobra.Command {
	var o memberOptions
	cmd := &cobra.Command{
		Use: "stop KEY", Short: "End an issue's run, keeping its work", Long: stopLong,
		Example: "  ralph stop fix-login\n  ralph stop --database-file ~/.config/ralph/database fix-login",
		GroupID: groupWork, Args: exit.OneIssue, ValidArgsFunction: a.completeKeys,
		RunE: a.inBacklog(func(ctx context.Context, p *parts, args []string) error { return a.stop(ctx, p, o, known(args[0])) }),
	}
	o.flags(cmd)
	a.bind(cmd, config.ForIssue)
	return cmd
}

func (a *app) stop(ctx context.Context, p *parts, o memberOptions, key string) error {
	runs, err := p.runsOf(ctx, key)
	if err != nil && !errors.Is(err, errNoRuns) {
		return err
	}
	if run, err := requestStop(runs); run != "" {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("run %s has just been claimed; try again in a moment: ralph stop %s", run, key)
		}
		if err == nil {
			a.ui.Printf("Asked run %s to end. `ralph logs -f %s` shows how it goes.\n", run, screen.CleanLine(key))
		}
		return err
	}
	database, name, err := a.member(ctx, p, o)
	if err != nil {
		return err
	}
	if database != nil {
		defer database.Close()
		stopped, err := database.Stop(ctx, name, p.key(ctx, key))
		if stopped {
			a.ui.Printf("Asked the machine that has %s of %s to end its run.\n", screen.CleanLine(key), screen.CleanLine(name))
		}
		if stopped || err != nil {
			return err
		}
		return fmt.Errorf("%s of %s is not being worked in the fleet; `ralph fleet status` says what is", key, name)
	}
	return fmt.Errorf("%s is not being worked on this host; `ralph status` says what is", key)
}

// requestStop asks the run that is on to end. It returns its id; "" if there is none.
func requestStop(runs []journal.Record) (string, error) {
	for _, r := range runs {
		if stateOf(r).State == "running" {
			return r.ID, journal.RequestStop(r)
		}
	}
	return "", nil
}
