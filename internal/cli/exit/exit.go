// Package exit turns the end of a command line into an exit status, and into an error for people or programs. It also words the
// errors of wrong command lines.
package exit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/statedir"
)

// The exit statuses. They are documented in the help.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	Incomplete  = 3 // a run did not succeed or made no commits, or an issue was skipped
	Parked      = 4 // nothing could be done: agent, sandbox, tracker or database unavailable
	Interrupted = 130
)

// Error is an error with an exit status of its own.
type Error struct {
	Status int    // one of the constants above
	Err    error  // the message
	Hint   string // the next step; may be empty
	Told   bool   // an earlier call of ralph printed it, so --quiet omits it
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns the error of a wrong command line.
func Usagef(format string, args ...any) error {
	return &Error{Status: Usage, Err: fmt.Errorf(format, args...)}
}

// Incompletef returns the error of a command that has left some issues out.
func Incompletef(format string, args ...any) error {
	return &Error{Status: Incomplete, Err: fmt.Errorf(format, args...)}
}

// Problem describes for display how a command line failed. nil means success.
type Problem struct {
	Status   int              `json:"exit_status"`
	Message  string           `json:"message"`
	Hint     string           `json:"hint,omitempty"`
	Problems []config.Problem `json:"problems,omitempty"` // of the configuration, one per line of Message
	Told     bool             `json:"-"`                  // see Error.Told
}

// ProblemOf is the only place that turns an error into an exit status and a hint.
func ProblemOf(ctx context.Context, root *cobra.Command, err error) *Problem {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrInterrupted) || errors.Is(err, ErrKilled) ||
		errors.Is(err, context.Canceled) && ctx.Err() != nil {
		message := err.Error()
		if errors.Is(err, context.Canceled) {
			message = context.Cause(ctx).Error()
		}
		return &Problem{Status: Interrupted, Message: message}
	}
	var (
		decided   *Error
		invalid   config.Problems
		untrusted *config.UntrustedError
	)
	switch {
	case errors.As(err, &decided):
		return &Problem{Status: decided.Status, Message: err.Error(), Hint: cmp.Or(decided.Hint, hint.For(err)), Told: decided.Told}
	case errors.As(err, &invalid):
		return &Problem{Status: Usage, Message: invalid.Error(), Problems: invalid}
	}
	wrong := []error{worktree.ErrUnfinished, worktree.ErrNoBase, git.ErrNoRemote, statedir.ErrInCheckout}
	if errors.As(err, &untrusted) || slices.ContainsFunc(wrong, func(is error) bool { return errors.Is(err, is) }) {
		return &Problem{Status: Usage, Message: err.Error(), Hint: hint.For(err)}
	}
	if errors.Is(err, local.ErrNoFolder) {
		return &Problem{Status: Usage, Message: err.Error(), Hint: hint.Init}
	}
	if _, broken := errors.AsType[tracker.Problem](err); broken {
		return &Problem{Status: Incomplete, Message: err.Error()}
	}
	if message, unknown := unknownCommand(root, err); unknown {
		return &Problem{Status: Usage, Message: message}
	}
	status := Failed
	if IsAway(err) {
		status = Parked
	}
	return &Problem{Status: status, Message: err.Error(), Hint: hint.For(err)}
}

// Tell prints the problem, if there is one, and returns the exit status.
func Tell(p *screen.Printer, problem *Problem, asJSON bool) int {
	if problem == nil {
		return OK
	}
	if p.Quiet && problem.Told {
		return problem.Status
	}
	if asJSON {
		_ = screen.WriteJSON(p.Err, map[string]any{"error": problem}, "")
		return problem.Status
	}
	for line := range strings.Lines(problem.Message) {
		p.Fail(strings.TrimSuffix(line, "\n"))
	}
	if problem.Hint != "" {
		p.Fail(problem.Hint)
	}
	return problem.Status
}

// IsAway reports that tracker or remote cannot be used now, or not with this token.
func IsAway(err error) bool {
	var (
		away    *tracker.UnavailableError
		refused *tracker.RefusedError
	)
	return errors.As(err, &away) || errors.As(err, &refused) || errors.Is(err, worktree.ErrRemote)
}

// Classified gives errors about unknown keys their exit status and hint: wrong usage, but not if the issue did exist once.
func Classified(err error) error {
	var unknown *backlog.UnknownKeyError
	switch {
	case errors.As(err, &unknown) && unknown.Gone():
		return &Error{Status: Incomplete, Err: err, Hint: "`ralph show KEY` shows its runs, `ralph diff KEY` their work"}
	case errors.As(err, &unknown) && unknown.Nearest != "":
		return Usagef("%w; did you mean %s?", err, unknown.Nearest)
	case errors.As(err, &unknown):
		return Usagef("%w; `ralph work --dry-run` lists them", err)
	}
	return err
}

// ErrInterrupted is the cause of all that ends because the user asked ralph to stop.
var ErrInterrupted = errors.New("interrupted")

// ErrKilled is the cause after the second request to stop.
var ErrKilled = errors.New("interrupted twice")
