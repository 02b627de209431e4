package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"
)

// InstallHint is what to do about a program that is not found.
const InstallHint = "install it where the agent runs"

// NotFound says that an agent's program is missing.
func NotFound(program string) string { return program + ": not found in PATH" }

// end is the state of a decoder when its process has ended.
type end struct {
	program  string
	reported *Failure // by the program itself
	finished bool     // the program said that it is done
	lines    int      // it has printed
	// refusals are the beginnings of the program's messages about its own command line and configuration on stderr. They
	// count only when nothing was printed, that is, before any agent was at work.
	refusals []string
	waiting  string // for its model service, as " (429 rate_limit)"; empty: it was not
	class    Class  // of the wait
}

// failure puts a report of the program before how it ended, and that before a missing result.
func (x end) failure(e Ending) *Failure {
	doing := ""
	if x.waiting != "" {
		doing = " while it waited for its model service" + x.waiting
	}
	signal := signalOf(e)
	switch {
	case e.StartErr != nil:
		if errors.Is(e.StartErr, exec.ErrNotFound) || errors.Is(e.StartErr, fs.ErrNotExist) {
			return fail(NotStarted, "%s; %s", NotFound(x.program), InstallHint)
		}
		return fail(NotStarted, "%s: %v; %s", x.program, e.StartErr, InstallHint)
	case x.reported != nil:
		return x.reported
	case signal != "":
		return fail(Killed, "%s was ended by %s%s", x.program, signal, doing)
	case x.finished && e.ExitCode == 0:
		return nil
	case x.finished:
		return x.exited(e)
	case x.lines == 0 && (e.ExitCode == 126 || e.ExitCode == 127): // of a shell or a container
		return fail(NotStarted, "%s could not be executed (status %d: %s); %s",
			x.program, e.ExitCode, clip(lastLine(e.StderrTail), maxDetail), InstallHint)
	}
	if x.lines == 0 && e.ExitCode != 0 {
		for _, refusal := range x.refusals {
			if line := firstLineWith(e.StderrTail, refusal); line != "" {
				return fail(BadRequest, "%s refused its command line or configuration: %s", x.program, line)
			}
		}
	}
	switch {
	case doing != "":
		return fail(x.class, "%s ended (status %d)%s", x.program, e.ExitCode, doing)
	case e.ExitCode != 0:
		return x.exited(e)
	}
	return fail(OtherFailure, "%s ended without a result", x.program)
}

// exited is the failure of a process that ended by itself without a reason.
func (x end) exited(e Ending) *Failure {
	if line := clip(lastLine(e.StderrTail), maxMessage); line != "" {
		return fail(OtherFailure, "%s exited with status %d: %s", x.program, e.ExitCode, line)
	}
	return fail(OtherFailure, "%s exited with status %d and no message", x.program, e.ExitCode)
}

// signalOf is the signal that ended a process, or "". Programs that catch a signal to clean up, and container
// clients, turn it into an exit status of 128 plus its number.
func signalOf(e Ending) string {
	if e.Signal != "" {
		return e.Signal
	}
	return map[int]string{
		128 + 1: "SIGHUP", 128 + 2: "SIGINT", 128 + 3: "SIGQUIT", 128 + 6: "SIGABRT",
		128 + 9: "SIGKILL", 128 + 11: "SIGSEGV", 128 + 15: "SIGTERM",
	}[e.ExitCode]
}

func fail(c Class, format string, args ...any) *Failure {
	return &Failure{Class: c, Message: clip(fmt.Sprintf(format, args...), maxMessage)}
}

// statusClass is the meaning of a model service's HTTP status; "" for a status that is no error.
func statusClass(status int64) Class {
	switch {
	case status < 400:
		return ""
	case status == 401 || status == 402 || status == 403:
		return Auth
	case status == 404:
		return ModelNotFound
	case status == 408 || status == 409 || status == 425 || status >= 500:
		return Overload
	case status == 429:
		return RateLimit
	}
	return BadRequest
}

// reset turns a Unix time, in seconds or milliseconds, into the end of a rate limit; zero when it cannot be one.
func reset(unix int64) time.Time {
	if unix > 1e12 {
		unix /= 1000
	}
	if unix < 1_500_000_000 || unix > 4_000_000_000 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
