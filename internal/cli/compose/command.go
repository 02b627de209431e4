package compose

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
)

// looks reports a command that starts no agent, check or setup, and no program that a configuration names: it goes on without
// the guarded values of a repository's file that are not accepted. All other commands refuse such a file.
func looks(cmd *cobra.Command) bool {
	return cmd.Parent() == cmd.Root() && slices.Contains([]string{
		"stop", "clean", "status", "top", "show", "cost", "diff", "tree", "open", "verify", "logs", "doctor",
	}, cmd.Name())
}

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

// Sweeps marks a command whose help lists the exit statuses of runs.
const Sweeps = "sweeps"

// Bind registers the flags of keys, as config.Bind does, with completion of their values.
func (a *App) Bind(cmd *cobra.Command, uses config.Use, names ...string) {
	for _, k := range config.Bind(cmd.Flags(), uses, names...) {
		complete := cobra.NoFileCompletions
		switch {
		case k.Kind == config.Path:
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
