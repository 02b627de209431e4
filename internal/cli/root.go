package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// The groups of the help.
const (
	groupWork  = "work"
	groupLook  = "look"
	groupSetUp = "set-up"
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
  3    some issues did not succeed, or KEYs were left out
  4    agent, sandbox or tracker unavailable
  130  interrupted
`

// constructors make the commands, by name. A command added here is all there is to adding one.
func constructors() map[string]func(*app) *cobra.Command {
	return map[string]func(*app) *cobra.Command{
		"work":     newWorkCommand,
		"run":      newRunCommand,
		"new":      newNewCommand,
		"edit":     newEditCommand,
		"serve":    newServeCommand,
		"projects": newProjectsCommand,
		"fleet":    newFleetCommand,
		"stop":     newStopCommand,
		"merge":    newMergeCommand,
		"retry":    newRetryCommand,
		"close":    newCloseCommand,
		"reopen":   newReopenCommand,
		"clean":    newCleanCommand,
		"sandbox":  newSandboxCommand,
		"status":   newStatusCommand,
		"top":      newTopCommand,
		"show":     newShowCommand,
		"cost":     newCostCommand,
		"diff":     newDiffCommand,
		"tree":     newTreeCommand,
		"open":     newOpenCommand,
		"verify":   newVerifyCommand,
		"logs":     newLogsCommand,
		"prompt":   newPromptCommand,
		"init":     newInitCommand,
		"doctor":   newDoctorCommand,
		"image":    newImageCommand,
		"docker":   func(a *app) *cobra.Command { return newEngineCommand(a, "docker") },
		"podman":   func(a *app) *cobra.Command { return newEngineCommand(a, "podman") },
		"config":   newConfigCommand,
		"trust":    newTrustCommand,
		"version":  newVersionCommand,
	}
}

// looks reports a command that starts no agent, check or setup, and no program that a configuration names: it goes on without
// the guarded values of a repository's file that are not accepted. All other commands refuse such a file.
func looks(cmd *cobra.Command) bool {
	return cmd.Parent() == cmd.Root() && slices.Contains([]string{
		"stop", "clean", "status", "top", "show", "cost", "diff", "tree", "open", "verify", "logs", "doctor",
	}, cmd.Name())
}

// newRoot builds the tree of commands for a command line. Only the command that it begins with is made, if it is one: all flags
// of all commands take a third of the time of a short command.
func newRoot(a *app, args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:           "ralph",
		Short:         "Ralph empties a backlog",
		Long:          rootLong,
		Example:       rootExample,
		Version:       buildVersion().line(),
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.begin() },
	}
	root.SetIn(a.host.Stdin)
	root.SetOut(a.ui.Out)
	root.SetErr(a.ui.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { a.ui.Printf("%s", a.help(helped(cmd, args))) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if a.helpAll {
			return pflag.ErrHelp
		}
		return exit.FlagError(cmd, err)
	})
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work on issues:"},
		&cobra.Group{ID: groupLook, Title: "Look at work:"},
		&cobra.Group{ID: groupSetUp, Title: "Set up:"},
	)
	root.SetHelpCommandGroupID(groupSetUp)
	root.SetCompletionCommandGroupID(groupSetUp)

	flags := root.PersistentFlags()
	flags.StringVar(&a.repo, "repo", "", "the repository's `folder` (default: the one you are in)")
	flags.StringVar(&a.color, "color", a.color, "colour the output `when`: auto, always, never")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print results and errors only")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "print more of what goes on")
	flags.BoolP("help", "h", false, "explain the command")
	flags.VarPF(allHelp{a}, "help-all", "", "behind a command: explain it with all of its flags").NoOptDefVal = "true"
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors(), cobra.ShellCompDirectiveNoFileComp))

	all := constructors()
	asked := len(args) > 0 && all[args[0]] != nil
	if asked {
		all = map[string]func(*app) *cobra.Command{args[0]: all[args[0]]}
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
func (a *app) begin() error {
	if !slices.Contains(colors(), a.color) {
		return exit.Usagef("--color: %q is not one of %s", a.color, strings.Join(colors(), ", "))
	}
	if a.quiet && a.verbose {
		return exit.Usagef("--quiet and --verbose exclude each other; choose one")
	}
	a.ui.Configure(a.color, a.quiet, a.verbose)
	return nil
}

// addJSON gives a command the flag --json.
func (a *app) addJSON(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
}

// refuseUnknown makes a command refuse subcommands it does not have; cobra prints the help, as a success.
func refuseUnknown(c *cobra.Command) {
	c.Args, c.ValidArgsFunction = cobra.ArbitraryArgs, cobra.NoFileCompletions
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return exit.UnknownSubcommand(cmd, args[0])
	}
}

// newHelpCommand replaces cobra's, which takes an unknown command for a success.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command",
		Example: "  ralph help config",
		GroupID: groupSetUp,
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
