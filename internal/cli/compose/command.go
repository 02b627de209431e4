package compose

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// AddJSON adds the flag --json to a command.
func (a *App) AddJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.JSON, "json", false, "print JSON")
}

// IDs of the groups of commands in the help.
const (
	GroupWork  = "work"
	GroupLook  = "look"
	GroupSetUp = "set-up"
)

// Annotations of commands.
const (
	// Sweeps marks a command whose help lists the exit statuses of runs.
	Sweeps = "sweeps"
	// Looks marks a command that starts no agent, check or setup, and no program that a configuration names. It runs without those
	// guarded values of the repository's file that the user has not accepted; all other commands refuse such a file.
	Looks = "looks"
	// Reads marks a command with Looks that writes nothing: it works with a state folder on a full or read-only disk.
	Reads = "reads"
	// SaysUntrusted marks a command with Looks that itself reports the values that it leaves out.
	SaysUntrusted = "says-untrusted"
	// Waits marks a command that prints nothing else while it waits for a remote: it says that.
	Waits = "waits"
	// Serves marks a service, whose log is read by programs unless it has a terminal.
	Serves = "serves"
)

// Marks returns the annotations of a command with these marks.
func Marks(names ...string) map[string]string {
	marks := map[string]string{}
	for _, name := range names {
		marks[name] = "yes"
	}
	return marks
}

func marked(cmd *cobra.Command, name string) bool { return cmd.Annotations[name] != "" }

// Bind registers the flags of keys with config.Bind, and the completion of their values.
func (a *App) Bind(cmd *cobra.Command, uses keys.Use, names ...string) {
	for _, k := range config.Bind(cmd.Flags(), uses, names...) {
		complete := cobra.NoFileCompletions
		switch {
		case k.Kind == keys.Path:
			continue // the shell completes paths
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

// InBacklog returns a RunE for a command that works on a repository and its backlog. Both are open while run runs.
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
