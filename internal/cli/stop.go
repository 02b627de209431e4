package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/pool/journal"
)

const stopLong = `Ask the ralph that works an issue to end its run. The agent gets time to end, its commits are imported, and the claim
is released. No attempt is used; the next sweep takes the issue up again, unless you take its pick-up label away.`

func newStopCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "stop KEY", Short: "End an issue's run, keeping its work", Long: stopLong,
		Example: "  ralph stop fix-login",
		GroupID: groupWork, Args: oneIssue, ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error { return runStop(cmd, a, known(args[0])) },
	}
	a.bind(cmd, "tracker", "local.dir", "state-dir")
	return cmd
}

func runStop(cmd *cobra.Command, a *app, key string) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	runs, err := p.runsOf(cmd.Context(), key)
	if err != nil && !errors.Is(err, errNoRuns) {
		return err
	}
	for _, r := range runs {
		if stateOf(r).State == "running" {
			if err := journal.RequestStop(r); err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("run %s has just been claimed; try again in a moment: ralph stop %s", r.ID, key)
				}
				return err
			}
			a.ui.printf("Asked run %s to end. `ralph logs -f %s` shows how it goes.\n", r.ID, cleanLine(key))
			return nil
		}
	}
	return fmt.Errorf("%s is not being worked on this host; `ralph status` says what is", key)
}
