package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"time"
)

// notStarted is the failure of a program that never ran; nil when it did.
func notStarted(program, mend string, e Ending) *Failure {
	if e.StartErr == nil {
		return nil
	}
	message := fmt.Sprintf("%s: %v", program, e.StartErr)
	if errors.Is(e.StartErr, exec.ErrNotFound) || errors.Is(e.StartErr, fs.ErrNotExist) {
		message = program + ": not found in PATH"
	}
	return fail(NotStarted, "%s; %s", message, mend)
}

// killed is the failure of a process that a signal ended; nil when none did. Doing is what it was busy with, or "".
func killed(program, doing string, e Ending) *Failure {
	signal := signalOf(e)
	if signal == "" {
		return nil
	}
	return fail(Killed, "%s was ended by %s%s", program, signal, doing)
}

// signalOf is the signal that ended a process, or "". Programs that catch a signal to clean up, and container
// clients, turn it into an exit status of 128 plus its number.
func signalOf(e Ending) string {
	if e.Signal != "" {
		return e.Signal
	}
	switch e.ExitCode {
	case 128 + 1:
		return "SIGHUP"
	case 128 + 2:
		return "SIGINT"
	case 128 + 3:
		return "SIGQUIT"
	case 128 + 6:
		return "SIGABRT"
	case 128 + 9:
		return "SIGKILL"
	case 128 + 11:
		return "SIGSEGV"
	case 128 + 15:
		return "SIGTERM"
	}
	return ""
}

// exited is the failure of a process that ended by itself without saying why.
func exited(program string, e Ending) *Failure {
	if said := clip(lastLine(e.StderrTail), maxMessage); said != "" {
		return fail(OtherFailure, "%s exited with status %d: %s", program, e.ExitCode, said)
	}
	return fail(OtherFailure, "%s exited with status %d and no message", program, e.ExitCode)
}

// missing is the failure of a shell or container that could not find or execute the program; nil for any other.
// Lines is how many lines the program has printed.
func missing(program, mend string, lines int, e Ending) *Failure {
	if lines > 0 || e.ExitCode != 126 && e.ExitCode != 127 {
		return nil
	}
	return fail(NotStarted, "%s could not be executed (status %d: %s); %s",
		program, e.ExitCode, clip(lastLine(e.StderrTail), maxDetail), mend)
}

func fail(c Class, format string, args ...any) *Failure {
	return &Failure{Class: c, Message: clip(fmt.Sprintf(format, args...), maxMessage)}
}

// statusClass is what an HTTP status of a model service means; "" for a status that is no error.
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

// reset turns a Unix time, in seconds or milliseconds, into the end of a rate limit; zero when it can be none.
func reset(unix int64) time.Time {
	if unix > 1e12 {
		unix /= 1000
	}
	if unix < 1_500_000_000 || unix > 4_000_000_000 {
		return time.Time{}
	}
	return time.Unix(unix, 0).UTC()
}
