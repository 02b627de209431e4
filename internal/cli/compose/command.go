package compose

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/tracker"
)

// AddJSON gives a command the flag --json.
func (a *App) AddJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON")
}

// The groups of the help.
const (
	GroupWork  = "work"
	GroupLook  = "look"
	GroupSetUp = "set-up"
)

// What commands say of themselves, in their annotations.
const (
	// Sweeps marks a command whose help lists the exit statuses of runs.
	Sweeps = "sweeps"
	// Looks marks one that starts no agent, check or setup, and no program that a configuration names: it goes on without the
	// guarded values of a repository's file that are not accepted. All others refuse such a file.
	Looks = "looks"
	// SaysUntrusted marks one that looks and itself says what it goes on without.
	SaysUntrusted = "says-untrusted"
	// Serves marks a service: without a terminal, programs read its log.
	Serves = "serves"
)

// Marks are the annotations of a command.
func Marks(names ...string) map[string]string {
	marks := map[string]string{}
	for _, name := range names {
		marks[name] = "yes"
	}
	return marks
}

func marked(cmd *cobra.Command, name string) bool { return cmd.Annotations[name] != "" }

// Bind registers the flags of keys, as config.Bind does, with completion of their values.
func (a *App) Bind(cmd *cobra.Command, uses keys.Use, names ...string) {
	for _, k := range config.Bind(cmd.Flags(), uses, names...) {
		complete := cobra.NoFileCompletions
		switch {
		case k.Kind == keys.Path:
			continue // the shell's own
		case k.Registered:
			choices := a.Choices()[k.Name]
			complete = cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
			cmd.Flags().Lookup(k.Flag()).Usage += " (" + strings.Join(choices, ", ") + ")"
		case len(k.Choices) > 0:
			complete = cobra.FixedCompletions(k.Choices, cobra.ShellCompDirectiveNoFileComp)
		}
		_ = cmd.RegisterFlagCompletionFunc(k.Flag(), complete)
	}
}

// InBacklog is what a command does that works on a repository and its backlog, which are open meanwhile.
func (a *App) InBacklog(run func(ctx context.Context, p *Parts, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		p, err := a.Open(cmd)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		return run(cmd.Context(), p, args)
	}
}

// OnIssue makes cmd a command about one issue of the backlog.
func (a *App) OnIssue(cmd *cobra.Command, run func(ctx context.Context, p *Parts, issue tracker.Issue) error) {
	cmd.Args, cmd.ValidArgsFunction = exit.OneIssue, a.CompleteKeys
	cmd.RunE = a.InBacklog(func(ctx context.Context, p *Parts, args []string) error {
		issue, err := p.Issue(ctx, args[0])
		if err != nil {
			return err
		}
		return run(ctx, p, issue)
	})
}
