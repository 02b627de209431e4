package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// The exit statuses. They are part of the interface, and stand in the help of ralph.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitIncomplete  = 3 // some issues did not succeed
	exitParked      = 4 // nothing could be done: agent, sandbox or tracker unavailable
	exitInterrupted = 130
)

// exitError is an error that decides the exit status itself.
type exitError struct {
	status int
	err    error
	hint   string // what to type next; may be empty
	told   bool   // an earlier call has said it: --quiet does not say it again
}

func (e *exitError) Error() string { return e.err.Error() }

// Unwrap gives the error itself.
func (e *exitError) Unwrap() error { return e.err }

// usagef is the error of a wrong command line.
func usagef(format string, args ...any) error {
	return &exitError{status: exitUsage, err: fmt.Errorf(format, args...)}
}

// problem is how a command line ended, as it is shown: nil when it ended well.
type problem struct {
	Status   int              `json:"exit_status"`
	Message  string           `json:"message"`
	Hint     string           `json:"hint,omitempty"`
	Problems []config.Problem `json:"problems,omitempty"` // of the configuration, each a line of Message
	Told     bool             `json:"-"`                  // an earlier call has said it: --quiet does not say it again
}

// asProblem is the one place where an error becomes an exit status and a hint.
func asProblem(ctx context.Context, root *cobra.Command, err error) *problem {
	if err == nil {
		return nil
	}
	if errors.Is(err, errInterrupted) || errors.Is(err, errKilled) ||
		errors.Is(err, context.Canceled) && ctx.Err() != nil {
		message := err.Error()
		if errors.Is(err, context.Canceled) {
			message = context.Cause(ctx).Error()
		}
		return &problem{Status: exitInterrupted, Message: message}
	}
	var (
		decided   *exitError
		invalid   config.Problems
		untrusted *config.UntrustedError
	)
	switch {
	case errors.As(err, &decided):
		return &problem{Status: decided.status, Message: err.Error(), Hint: cmp.Or(decided.hint, hint.For(err)), Told: decided.told}
	case errors.As(err, &invalid):
		return &problem{Status: exitUsage, Message: invalid.Error(), Problems: invalid}
	}
	if errors.As(err, &untrusted) || errors.Is(err, worktree.ErrUnended) || errors.Is(err, git.ErrNoRemote) {
		return &problem{Status: exitUsage, Message: err.Error()}
	}
	if errors.Is(err, local.ErrNoFolder) {
		return &problem{Status: exitUsage, Message: err.Error(), Hint: hint.Init}
	}
	if message, unknown := unknownCommand(root, err); unknown {
		return &problem{Status: exitUsage, Message: message}
	}
	return &problem{Status: exitFailed, Message: err.Error(), Hint: hint.For(err)}
}

// unknownCommand rewords cobra's error for a command that does not exist, which has no type of its own.
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
	return fmt.Sprintf("unknown command %q%s", name, suggest(name, commandNames(root), "", "`ralph help` lists the commands")), true
}

// unknownSubcommand is the error of a name that a command does not have below it, or that stands behind one that has none.
func unknownSubcommand(cmd *cobra.Command, name string) error {
	if !cmd.HasSubCommands() {
		return fmt.Errorf("unknown command %q", name)
	}
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	return usagef("unknown command %q%s", path+" "+name,
		suggest(name, commandNames(cmd), "", fmt.Sprintf("`%s --help` lists the commands", cmd.CommandPath())))
}

func commandNames(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// suggest is the end of an error line about a name that does not exist.
func suggest(name string, candidates []string, before, otherwise string) string {
	return cmp.Or(config.DidYouMean(name, before, candidates), "; "+otherwise)
}

// flagError rewords pflag's errors: one line, the flag first, and the nearest flag for one that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	help := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
	switch {
	case cmd.HasParent() && cmd.HasSubCommands() && cmd.Flags().NArg() > 0: // the flag is one of a command that does not exist
		return unknownSubcommand(cmd, cmd.Flags().Arg(0))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return usagef("unknown flag -%s; %s", unknown.GetSpecifiedName(), help)
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		return usagef("unknown flag --%s%s", name, suggest(name, flagNames(cmd), "--", help))
	case errors.As(err, &missing):
		return usagef("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return usagef("--%s: %s", invalid.GetFlag().Name, flagCause(invalid))
	}
	return usagef("%s; %s", err, help)
}

// flagCause says what is wrong with a flag's value; the errors of pflag's own types name a Go function.
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

// noArgs refuses arguments, for commands that take none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// atMostOne refuses a second argument.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("%s takes one %s, not %d", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// oneIssue asks for the key of one issue.
func oneIssue(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("%s takes one KEY; type %s KEY", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// end prints how the command line ended, if it did not end well, and returns the exit status.
func end(p *screen.Printer, problem *problem, asJSON bool) int {
	if problem == nil {
		return exitOK
	}
	if p.Quiet && problem.Told {
		return problem.Status
	}
	if asJSON {
		_ = screen.WriteJSON(p.Err, map[string]any{"error": problem}, "")
		return problem.Status
	}
	for line := range strings.Lines(problem.Message) {
		_, _ = fmt.Fprintf(p.Err, "%s %s\n", p.PaintErr(screen.Red, "ralph:"), screen.CleanLine(strings.TrimSuffix(line, "\n")))
	}
	if problem.Hint != "" {
		_, _ = fmt.Fprintf(p.Err, "%s %s\n", p.PaintErr(screen.Red, "ralph:"), screen.CleanLine(problem.Hint))
	}
	return problem.Status
}

// isAway reports that the tracker or the remote cannot be used now, or not with this token.
func isAway(err error) bool {
	var (
		away    *tracker.UnavailableError
		refused *tracker.RefusedError
	)
	return errors.As(err, &away) || errors.As(err, &refused) || errors.Is(err, worktree.ErrRemote)
}

// asUsage marks the errors that are the command line's fault, and those of a tracker or remote that cannot be used now.
func asUsage(err error) error {
	var unknown *pool.UnknownKeyError
	switch {
	case errors.As(err, &unknown) && unknown.Nearest != "":
		return usagef("%w; did you mean %s?", err, unknown.Nearest)
	case errors.As(err, &unknown):
		return usagef("%w; `ralph work --dry-run` lists them", err)
	case isAway(err):
		return &exitError{status: exitParked, err: err}
	}
	return err
}
