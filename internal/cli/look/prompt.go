package look

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// NewPrompt returns `ralph prompt`.
func NewPrompt(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prompt KEY", Short: "Print the prompt that the agent would get for an issue",
		Long:        "Print the prompt of the first iteration, as the agent would get it. Commands in the template are shown, not run.",
		Example:     "  ralph prompt fix-login\n  ralph prompt --prompt-file new.md fix-login",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupLook, Args: exit.OneIssue, ValidArgsFunction: a.CompleteKeys,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return printPrompt(ctx, a, p, args[0])
		}),
	}
	a.Bind(cmd, keys.ForTracker, "agent", "agent-command", "prompt-file", "completion-signal", "gate", "base", "branch-prefix",
		"commit-author", "committer", "sign-off", "co-authors")
	return cmd
}

func printPrompt(ctx context.Context, a *compose.App, p *compose.Parts, key string) error {
	p.PreferNone() // this command runs nothing in a sandbox
	for _, program := range []*[]string{&p.AgentCommand, &p.ReviewCommand} {
		if a.Untrusted != nil && len(*program) == 0 { // dropped as untrusted; any program gives the same prompt
			*program = []string{"none"}
		}
	}
	worker, err := a.Worker(ctx, p)
	if err != nil {
		return err
	}
	issue, err := p.Issue(ctx, key)
	if err != nil {
		return err
	}
	text, err := worker.Prompt(ctx, issue.Key)
	if err != nil {
		return exit.Classified(err)
	}
	_, err = a.UI.Out.Write([]byte(text))
	return err
}
