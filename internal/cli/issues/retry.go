package issues

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

const retryLong = `Ask the next ralph work, on any machine, to work an issue again, like the comment /ralph retry (or /ralph
fresh) on a forge: reset attempts and waiting times, add the pick-up label, remove needs-human and needs-info. --fresh also
ends an unfinished run on which no process of this host works; work of it that is not imported is moved aside.`

// NewRetry returns `ralph retry`.
func NewRetry(a *compose.App) *cobra.Command {
	var fresh, told bool
	cmd := &cobra.Command{
		Use: "retry KEY...", Short: "Ask the next sweep to work issues again", Long: retryLong,
		Example: "  ralph retry fix-login\n  ralph retry --fresh fix-login", GroupID: compose.GroupWork,
		Annotations: compose.Marks(compose.Waits),
	}
	onEach(a, cmd, func(ctx context.Context, p *compose.Parts, issue tracker.Issue) error {
		if !issue.Open {
			return &exit.Error{
				Status: exit.Incomplete,
				Err:    fmt.Errorf("%s is closed", screen.CleanLine(p.Names(ctx)(issue.Key))),
				Hint:   "open it first with: ralph reopen " + issue.Key,
			}
		}
		p.PreferNone() // this command runs nothing in a sandbox
		worker, err := a.Worker(ctx, p)
		if err != nil {
			return err
		}
		verb := tracker.Retry
		if fresh {
			verb = tracker.Fresh
		}
		switch err := worker.Requeue(ctx, issue.Key, cmp.Or(a.Host.Getenv("USER"), "a person"), verb, ""); {
		case errors.Is(err, worktree.ErrTaken):
			return &exit.Error{
				Status: exit.Incomplete,
				Err:    fmt.Errorf("retry %s: %w", issue.Key, err),
				Hint: "`ralph stop " + issue.Key + "` ends the current run, on the machine that works it; " +
					"the next `ralph work` ends the claim of a lost run",
			}
		case err != nil:
			return fmt.Errorf("retry %s: %w", issue.Key, err)
		}
		a.UI.Printf("The next `ralph work` works %s.\n", screen.CleanLine(issue.Key))
		parked, err := look.Waits(ctx, a, p)
		if !told {
			look.PrintParked(a, parked)
			told = true
		}
		if len(parked) > 0 {
			a.UI.Printf("Before %s only `ralph work %s` works it.\n",
				parked[0].Until.Local().Format(time.DateTime), screen.CleanLine(issue.Key))
		}
		return err
	})
	cmd.Flags().BoolVar(&fresh, "fresh", false, "start from the base, without the earlier work")
	a.Bind(cmd, keys.ForIssue, "labels")
	cmd.Flags().Lookup("label").Usage = "the pick-up labels to add"
	return cmd
}
