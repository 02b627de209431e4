package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
)

func newPromptCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "prompt KEY", Short: "Print exactly what the agent would be told about an issue",
		Long:    "Print exactly what the agent would be told in the first iteration. Commands in the template are shown, not run.",
		Example: "  ralph prompt fix-login\n  ralph prompt --prompt-file new.md fix-login",
		GroupID: groupLook, Args: oneIssue, ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error { return runPrompt(cmd, a, known(args[0])) },
	}
	a.bind(cmd, config.ForTracker, "agent", "agent-command", "prompt-file", "completion-signal", "gate", "base", "branch-prefix",
		"commit-author", "committer", "sign-off", "co-authors")
	return cmd
}

func runPrompt(cmd *cobra.Command, a *app, key string) (err error) {
	p, err := a.open(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if p.Sandbox == "auto" {
		p.assumeNone() // nothing is run
	}
	c, err := a.poolConfig(cmd.Context(), p)
	if err != nil {
		return err
	}
	workers, err := pool.New(c)
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	text, err := workers.Prompt(cmd.Context(), p.key(cmd.Context(), key))
	if errors.Is(err, tracker.ErrNotFound) {
		return asUsage(&pool.UnknownKeyError{Key: key})
	}
	if err != nil {
		return err
	}
	_, err = a.ui.out.Write([]byte(text))
	return err
}
