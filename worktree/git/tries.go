package git

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/internal/retry"
)

// Tries repeats commands that talk to one remote, as calls of an API are repeated, when the failure may pass. Once a
// command has used up its tries, each gets only one until the remote answers again: an outage is not waited for by every
// command anew. It is safe for concurrent use; a nil Tries repeats nothing.
type Tries struct {
	// Sleep waits between two tries; nil: the real time.
	Sleep func(ctx context.Context, d time.Duration) error

	away atomic.Bool // the last command used up its tries
}

// Repeating makes commands that talk to the remote share these tries.
func (g Runner) Repeating(t *Tries) Runner {
	g.tries = t
	return g
}

// do runs the command until it succeeds, fails for good, or the tries are used up.
func (t *Tries) do(ctx context.Context, command func() error) error {
	err := command()
	if t == nil {
		return err
	}
	sleep := t.Sleep
	if sleep == nil {
		sleep = retry.Sleep
	}
	for n := 1; passing(err) && n < retry.Attempts && !t.away.Load(); n++ {
		if stopped := sleep(ctx, retry.Pause(n)); stopped != nil {
			return errors.Join(stopped, err)
		}
		err = command()
	}
	t.away.Store(passing(err))
	return err
}

// statusOf finds the HTTP status in git's words.
var statusOf = pattern.Lazy(`(?:returned error: |HTTP )(\d{3})\b`)

// passing reports a failure that may pass by itself. Git has no codes for why; its words are in English, as LC_ALL says.
func passing(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	var said strings.Builder
	for line := range strings.Lines(failed.Stderr) {
		if strings.Contains(line, "not our ref") || strings.Contains(line, "does not support --atomic") { // what was to be fetched is gone; it never will
			return false
		}
		if !strings.HasPrefix(line, "remote:") { // that is a program's on the server, such as a hook's
			said.WriteString(line)
		}
	}
	if m := statusOf().FindStringSubmatch(said.String()); m != nil {
		const timeout, tooMany, serverError = 408, 429, 500 // net/http would be linked for them alone
		status, _ := strconv.Atoi(m[1])                     // digits
		return status >= serverError || status == timeout || status == tooMany
	}
	text := strings.ToLower(said.String())
	for _, words := range []string{
		"could not resolve host", "temporary failure in name resolution", "failed to connect", "couldn't connect to server",
		"connection refused", "connection reset", "connection closed", "connection timed out", "operation timed out",
		"network is unreachable", "no route to host", "empty reply from server", "recv failure", "early eof",
		"unexpected disconnect", "the remote end hung up",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}
