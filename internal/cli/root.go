package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/clean"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/doctor"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/finish"
	"github.com/ralph-pool/ralph/internal/cli/fleetdb"
	"github.com/ralph-pool/ralph/internal/cli/issues"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/sandbox"
	"github.com/ralph-pool/ralph/internal/cli/serve"
	"github.com/ralph-pool/ralph/internal/cli/setup"
	"github.com/ralph-pool/ralph/internal/cli/work"
)

const rootLong = `Ralph empties a backlog. It takes the issues that a person marked as needing no human, works each one with an AI
coding agent in its own git worktree until the checks you name pass, and hands you the commits.`

const rootExample = `  ralph init                               # set a repository up
  ralph work -n                            # what would be worked, what not, why
  ralph work -p 4                          # empty the backlog
  ralph run --prompt 'Fix the flaky test'  # one prompt, no backlog`

const exitHelp = `
Exit status:
  0    all done, or nothing to do
  1    ralph failed
  2    wrong usage or configuration
  3    a run did not succeed or made no commits, or a KEY was skipped
  4    agent, sandbox, tracker or database unavailable
  130  interrupted

Where sandbox exec runs a command, or an engine builds an image, the status of that is passed on.
`

// constructors returns the constructors of all commands by name. A new command needs an entry here.
func constructors() map[string]func(*compose.App) *cobra.Command {
	return map[string]func(*compose.App) *cobra.Command{
		"work":     work.NewCommand,
		"run":      work.NewRun,
		"new":      issues.NewCreate,
		"edit":     issues.NewEdit,
		"serve":    serve.NewCommand,
		"projects": serve.NewProjects,
		"fleet":    fleetdb.NewCommand,
		"stop":     issues.NewStop,
		"merge":    finish.NewMerge,
		"retry":    issues.NewRetry,
		"close":    issues.NewClose,
		"reopen":   issues.NewReopen,
		"clean":    clean.NewCommand,
		"sandbox":  sandbox.NewCommand,
		"status":   look.NewStatus,
		"top":      serve.NewTop,
		"show":     look.NewShow,
		"cost":     look.NewCost,
		"diff":     finish.NewDiff,
		"tree":     finish.NewTree,
		"open":     finish.NewOpen,
		"verify":   finish.NewVerify,
		"logs":     look.NewLogs,
		"prompt":   look.NewPrompt,
		"init":     setup.NewInit,
		"doctor":   doctor.NewCommand,
		"image":    sandbox.NewImage,
		"docker":   func(a *compose.App) *cobra.Command { return sandbox.NewEngine(a, "docker") },
		"podman":   func(a *compose.App) *cobra.Command { return sandbox.NewEngine(a, "podman") },
		"config":   setup.NewConfig,
		"trust":    setup.NewTrust,
		"version":  newVersionCommand,
	}
}

// newRoot builds the command tree. If the command line begins with the name of a command it makes only that command: all flags of
// all commands would take a third of the time of a short command.
func newRoot(a *compose.App, args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:           "ralph",
		Short:         "Ralph empties a backlog",
		Long:          rootLong,
		Example:       rootExample,
		Version:       a.Build().Line(),
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return begin(a) },
	}
	root.SetIn(a.Host.Stdin)
	root.SetOut(a.UI.Out)
	root.SetErr(a.UI.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { a.UI.Printf("%s", help(a, helped(cmd, args))) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if a.HelpAll {
			return pflag.ErrHelp
		}
		return exit.FlagError(cmd, err)
	})
	root.AddGroup(
		&cobra.Group{ID: compose.GroupWork, Title: "Work on issues:"},
		&cobra.Group{ID: compose.GroupLook, Title: "Look at work:"},
		&cobra.Group{ID: compose.GroupSetUp, Title: "Set up:"},
	)
	root.SetHelpCommandGroupID(compose.GroupSetUp)
	root.SetCompletionCommandGroupID(compose.GroupSetUp)

	flags := root.PersistentFlags()
	flags.StringVar(&a.Repo, "repo", "", "the repository's `folder` (default: the one you are in)")
	flags.StringVar(&a.Color, "color", a.Color, "colour the output `when`: auto, always, never")
	flags.BoolVarP(&a.UI.Quiet, "quiet", "q", false, "print results and errors only")
	flags.BoolVarP(&a.UI.Verbose, "verbose", "v", false, "print more details")
	flags.BoolP("help", "h", false, "explain the command")
	flags.VarPF(allHelp{a}, "help-all", "", "after a command: explain it with all of its flags").NoOptDefVal = "true"
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors(), cobra.ShellCompDirectiveNoFileComp))

	all := constructors()
	asked := len(args) > 0 && all[args[0]] != nil
	if asked {
		all = map[string]func(*compose.App) *cobra.Command{args[0]: all[args[0]]}
		root.CompletionOptions.DisableDefaultCmd = true
	}
	for _, command := range all {
		c := command(a)
		if c.HasSubCommands() {
			refuseUnknown(c)
		}
		root.AddCommand(c)
	}
	root.SetHelpCommand(newHelpCommand())
	if !asked {
		refineCompletion(root)
	}
	return root
}

func colors() []string { return []string{"auto", "always", "never"} }

// begin checks and applies the global flags.
func begin(a *compose.App) error {
	if !slices.Contains(colors(), a.Color) {
		return exit.Usagef("--color: %q is not one of %s", a.Color, strings.Join(colors(), ", "))
	}
	if a.UI.Quiet && a.UI.Verbose {
		return exit.Usagef("--quiet and --verbose exclude each other; choose one")
	}
	a.UI.Configure(a.Color, a.UI.Quiet, a.UI.Verbose)
	return nil
}

// refuseUnknown makes a command refuse unknown subcommands. Cobra alone would print the help and succeed.
func refuseUnknown(c *cobra.Command) {
	c.Args, c.ValidArgsFunction = cobra.ArbitraryArgs, cobra.NoFileCompletions
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return exit.UnknownSubcommand(cmd, args[0])
	}
}

// newHelpCommand replaces cobra's help command, which succeeds for an unknown command.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Example: "  ralph help config",
		GroupID: compose.GroupSetUp,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return exit.UnknownSubcommand(target, rest[0])
			}
			return target.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return exit.CommandNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// refineCompletion makes cobra's completion command refuse unknown shells. Alone it would print its help and succeed.
func refineCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd("completion")
	completion, _, err := root.Find([]string{"completion"})
	if err != nil || completion == root {
		return
	}
	completion.Long = strings.TrimSpace(completion.Long) + "\n\nIn bash it needs the package bash-completion."
	for _, shell := range completion.Commands() {
		shell.Args = exit.NoArgs
	}
	completion.Args = cobra.ArbitraryArgs
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		shells := exit.CommandNames(cmd)
		return exit.Usagef("unknown shell %q%s", args[0], exit.Suggest(args[0], shells, "", "it is one of "+strings.Join(shells, ", ")))
	}
}
