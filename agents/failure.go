package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// CreditHint is the hint for an account without credit.
const CreditHint = "pay in or raise the limit at the provider, use a key of another account, or let another agent take over"

// Advice returns what a user can do about a failure of this class; empty if the failure itself says so.
func (c Class) Advice(l Login) string {
	switch c {
	case Auth:
		return l.Hint
	case NoCredit:
		return CreditHint
	}
	return ""
}

// Advised returns a service's message with an explanation for the user.
func Advised(c Class, message string, l Login) string {
	means := map[Class]string{Auth: "the login is missing or was refused", NoCredit: "the account has no credit left"}[c]
	if means == "" {
		return message
	}
	return fmt.Sprintf("%s (%s: %s)", Clip(message, MaxMessage/2), means, c.Advice(l))
}

// IsNoCreditMessage reports whether a service's message says that an account has no credit, which some services send with the status
// of a bad request or a rate limit. Pass only a service's own text, since a model could write the same.
func IsNoCreditMessage(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc([]string{
		"credit balance is too low", "exceeded your current quota", "check your plan and billing",
		"insufficient balance", "insufficient credits", "out of credits", "billing hard limit",
		"prepayment credits are depleted", "spending cap",
	}, func(text string) bool { return strings.Contains(message, text) })
}

// NotFound returns the message that an agent's program is missing.
func NotFound(program string) string {
	if strings.Contains(program, "/") {
		return program + ": not found"
	}
	return program + ": not found in PATH"
}

// lacksInterpreter matches package proc's error for a script whose interpreter is missing, and envFailure that of env.
var (
	lacksInterpreter = pattern.Lazy(`its interpreter \S+ is missing`)
	envFailure       = pattern.Lazy(`(?m)^\S*env: (?:can't execute )?['"‘` + "`" + `]?([^\s:'"’]+)['"’]?: No such file or directory`)
)

// failure returns why the process failed, or nil. The program's own report takes precedence over its exit status, and that over a
// missing result.
func (s *Stream) failure(e Ending) *Failure {
	whileWaiting := ""
	if s.Waiting != "" {
		whileWaiting = " while it waited for its model service" + s.Waiting
	}
	signal := signalOf(e)
	switch {
	case e.StartErr != nil && lacksInterpreter().MatchString(e.StartErr.Error()):
		return NewFailure(NotStarted, "%s cannot be started: %s", s.Program, lacksInterpreter().FindString(e.StartErr.Error()))
	case e.StartErr != nil:
		if errors.Is(e.StartErr, exec.ErrNotFound) || errors.Is(e.StartErr, fs.ErrNotExist) {
			return NewFailure(NotStarted, "%s", NotFound(s.Program))
		}
		return NewFailure(NotStarted, "%s: %v", s.Program, e.StartErr)
	case s.Failure != nil:
		return s.Failure
	case signal != "":
		return NewFailure(Killed, "%s was ended by %s%s", s.Program, signal, whileWaiting)
	case s.Finished && e.ExitCode == 0:
		return nil
	case s.Finished:
		return s.exitFailure(e)
	case s.lines == 0 && e.ExitCode == 127 && envFailure().MatchString(e.StderrTail):
		name := envFailure().FindStringSubmatch(e.StderrTail)[1]
		return NewFailure(NotStarted, "%s cannot be started: its interpreter %s is missing", s.Program, name)
	case s.lines == 0 && (e.ExitCode == 126 || e.ExitCode == 127): // statuses of a shell or a container
		return NewFailure(NotStarted, "%s could not be executed (status %d: %s)", s.Program, e.ExitCode, Clip(lastLine(e.StderrTail), MaxDetail))
	}
	if s.lines == 0 && e.ExitCode != 0 {
		for _, refusal := range s.Refusals {
			if line := firstLineWith(e.StderrTail, refusal); line != "" {
				return NewFailure(BadRequest, "%s refused its command line or configuration: %s", s.Program, line)
			}
		}
	}
	switch {
	case whileWaiting != "":
		return NewFailure(s.Class, "%s ended (status %d)%s", s.Program, e.ExitCode, whileWaiting)
	case e.ExitCode != 0:
		return s.exitFailure(e)
	}
	return NewFailure(OtherFailure, "%s ended without a result", s.Program)
}

// exitFailure returns the failure of a process that exited without reporting a reason.
func (s *Stream) exitFailure(e Ending) *Failure {
	if line := Clip(lastLine(e.StderrTail), MaxMessage); line != "" {
		return NewFailure(OtherFailure, "%s exited with status %d: %s", s.Program, e.ExitCode, line)
	}
	return NewFailure(OtherFailure, "%s exited with status %d and no message", s.Program, e.ExitCode)
}

// signalOf returns the signal that ended a process, or "". Programs that catch a signal to clean up, and container clients, turn
// it into exit status 128 plus its number.
func signalOf(e Ending) string {
	if e.Signal != "" {
		return e.Signal
	}
	return map[int]string{
		128 + 1: "SIGHUP", 128 + 2: "SIGINT", 128 + 3: "SIGQUIT", 128 + 6: "SIGABRT",
		128 + 9: "SIGKILL", 128 + 11: "SIGSEGV", 128 + 15: "SIGTERM",
	}[e.ExitCode]
}

// NewFailure returns a failure. Its message is one harmless line of at most MaxMessage runes.
func NewFailure(c Class, format string, args ...any) *Failure {
	return &Failure{Class: c, Message: Clip(fmt.Sprintf(format, args...), MaxMessage)}
}

// StatusClass classifies an HTTP status of a model service; "" for a status that is not an error.
func StatusClass(status int64) Class {
	switch {
	case status < 400:
		return ""
	case status == 401 || status == 403:
		return Auth
	case status == 402:
		return NoCredit
	case status == 404:
		return ModelNotFound
	case status == 408 || status == 409 || status == 425 || status >= 500:
		return Overload
	case status == 429:
		return RateLimit
	}
	return BadRequest
}

// ResetTime converts a Unix time, in seconds or milliseconds, to the end of a rate limit; zero if it is not plausible.
func ResetTime(unix int64) time.Time {
	if unix > 1e12 {
		unix /= 1000
	}
	if unix < 1_500_000_000 || unix > 4_000_000_000 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
