package exit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/nearest"
)

// UnknownSubcommand returns the error of an unknown subcommand, or of an argument to a command without subcommands.
func UnknownSubcommand(cmd *cobra.Command, name string) error {
	if !cmd.HasSubCommands() {
		return fmt.Errorf("unknown command %q", name)
	}
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return Usagef("unknown command %q%s", path+" "+name,
		Suggest(name, CommandNames(cmd), "", fmt.Sprintf("`%s --help` lists the commands", cmd.CommandPath())))
}

// unknownCommand rewords cobra's error for an unknown command. That error has no type, so it is matched by its text.
func unknownCommand(root *cobra.Command, err error) (message string, ok bool) {
	rest, ok := strings.CutPrefix(err.Error(), "unknown command ")
	if !ok {
		return "", false
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", false
	}
	name, _ := strconv.Unquote(quoted)
	return fmt.Sprintf("unknown command %q%s", name, Suggest(name, CommandNames(root), "", "`ralph help` lists the commands")), true
}

// CommandNames lists the subcommands that are not hidden.
func CommandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// Suggest returns the end of an error about an unknown name: the nearest candidate, with before as its prefix, or else otherwise.
func Suggest(name string, candidates []string, before, otherwise string) string {
	return cmp.Or(nearest.DidYouMean(name, before, candidates), "; "+otherwise)
}

// FlagError rewords pflag's errors: one line, the flag first, and the nearest flag for an unknown one.
func FlagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	help := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
	switch {
	case cmd.HasParent() && cmd.HasSubCommands() && cmd.Flags().NArg() > 0: // a flag after an unknown subcommand
		return UnknownSubcommand(cmd, cmd.Flags().Arg(0))
	case errors.As(err, &unknown) && strings.HasPrefix(unknown.GetSpecifiedShortnames(), " "):
		return Usagef("a text that begins with - follows --, as in: %s -- '- TEXT'", cmd.CommandPath())
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return Usagef("unknown flag -%s; %s", unknown.GetSpecifiedName(), help)
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		return Usagef("unknown flag --%s%s", name, Suggest(name, flagNames(cmd), "--", help))
	case errors.As(err, &missing):
		return Usagef("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return Usagef("--%s: %s", invalid.GetFlag().Name, flagCause(invalid))
	}
	return Usagef("%s; %s", err, help)
}

// flagCause says why a flag's value is invalid. pflag's own errors name a Go function.
func flagCause(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "bool":
		return fmt.Sprintf("%q is neither true nor false", e.GetValue())
	case "int":
		if errors.Is(e, strconv.ErrRange) {
			return fmt.Sprintf("%s is not from %d to %d", e.GetValue(), math.MinInt, math.MaxInt)
		}
		return fmt.Sprintf("%q is not a whole number", e.GetValue())
	}
	return errors.Unwrap(e).Error()
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return names
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// AtMostOne refuses a second argument. what names the argument.
func AtMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usagef("%s takes one %s, not %d", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// AtMostOneName refuses a second argument, and an empty one.
func AtMostOneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] == "" {
			return Usagef("the %s of %s is empty; name one, or remove it", what, cmd.CommandPath())
		}
		return AtMostOne(what)(cmd, args)
	}
}

// OneIssue refuses anything but one KEY.
func OneIssue(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return Usagef("name the issue: %s KEY", cmd.CommandPath())
	case 1:
		return nil
	}
	return Usagef("%s takes one KEY, not %d", cmd.CommandPath(), len(args))
}
