package finish

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/journal"
)

const openLong = `Print the address of an issue's open pull or merge request, or of the issue if there is none, and open it
in the browser. In a backlog of files it is the path of the file. Without a terminal nothing is opened.`

// NewOpen returns `ralph open`.
func NewOpen(a *compose.App) *cobra.Command {
	var issueOnly bool
	cmd := &cobra.Command{
		Use: "open KEY", Short: "Open an issue, or its request, in the browser", Long: openLong,
		Example: "  ralph open 42\n  ralph open --issue 42", Annotations: compose.Marks(compose.Looks),
		GroupID: compose.GroupLook, Args: exit.OneIssue, ValidArgsFunction: a.CompleteKeys,
	}
	cmd.RunE = a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
		issue, err := p.Issue(ctx, args[0])
		if err != nil {
			return err
		}
		runs, err := p.Journal.Find(ctx, journal.Query{Key: issue.Key})
		if err != nil {
			return err
		}
		where := issue.URL
		if n := len(runs); n > 0 && runs[n-1].Request.URL != "" && !issueOnly {
			where = runs[n-1].Request.URL
		}
		a.Browse(where)
		return nil
	})
	cmd.Flags().BoolVar(&issueOnly, "issue", false, "the issue, not its request")
	a.Bind(cmd, keys.ForIssue)
	return cmd
}
