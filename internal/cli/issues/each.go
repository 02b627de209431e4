package issues

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/tracker"
)

// onEach makes cmd a command that takes issues of the backlog. If one fails, it goes on with the next; the worst exit status counts.
func onEach(a *compose.App, cmd *cobra.Command, run func(ctx context.Context, p *compose.Parts, issue tracker.Issue) error) {
	cmd.ValidArgsFunction = a.CompleteKeys
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return exit.Usagef("name the issues: %s KEY...", cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
		var list []tracker.Issue
		for _, typed := range args { // all, before the first is changed: a KEY may be mistyped
			issue, err := p.Issue(ctx, typed)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(list, func(i tracker.Issue) bool { return i.Key == issue.Key }) {
				list = append(list, issue)
			}
		}
		if len(list) == 1 {
			return run(ctx, p, list[0])
		}
		failed, status := 0, exit.OK
		for _, issue := range list {
			err := run(ctx, p, issue)
			if ctx.Err() != nil {
				return cmp.Or(err, ctx.Err())
			}
			problem := exit.ProblemOf(ctx, cmd.Root(), err)
			if problem == nil {
				continue
			}
			line := problem.Message
			if problem.Hint != "" {
				line += "; " + problem.Hint
			}
			a.UI.Fail(line)
			failed, status = failed+1, worse(status, problem.Status)
		}
		if failed == 0 {
			return nil
		}
		return &exit.Error{Status: status, Err: fmt.Errorf("%s: %d of %s failed", cmd.Name(), failed, screen.Plural(len(list), "issue"))}
	})
}

// worse returns the worse of two exit statuses.
func worse(a, b int) int {
	order := []int{exit.OK, exit.Incomplete, exit.Parked, exit.Usage, exit.Failed}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}
