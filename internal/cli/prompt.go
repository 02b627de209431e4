package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
)

func newPromptCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prompt KEY", Short: "Print the prompt that the agent would get for an issue",
		Long:    "Print the prompt of the first iteration, as the agent would get it. Commands in the template are shown, not run.",
		Example: "  ralph prompt fix-login\n  ralph prompt --prompt-file new.md fix-login",
		GroupID: groupLook, Args: exit.OneIssue, ValidArgsFunction: a.completeKeys,
		RunE: a.inBacklog(func(ctx context.Context, p *parts, args []string) error { return a.printPrompt(ctx, p, known(args[0])) }),
	}
	a.bind(cmd, config.ForTracker, "agent", "agent-command", "prompt-file", "completion-signal", "gate", "base", "branch-prefix",
		"commit-author", "committer", "sign-off", "co-authors")
	return cmd
}

func (a *app) printPrompt(ctx context.Context, p *parts, key string) error {
	if p.Sandbox == "auto" {
		p.assumeNone() // nothing is run
	}
	c, err := a.poolConfig(ctx, p)
	if err != nil {
		return err
	}
	workers, err := pool.New(c)
	if err != nil {
		return &exit.Error{Status: exit.Usage, Err: err}
	}
	text, err := workers.Prompt(ctx, p.key(ctx, key))
	if errors.Is(err, tracker.ErrNotFound) {
		return exit.AsUsage(&pool.UnknownKeyError{Key: key})
	}
	if err != nil {
		return err
	}
	_, err = a.ui.Out.Write([]byte(text))
	return err
}
