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

// Tries repeats commands with one remote, like API calls, if the failure may be temporary. After a command has used up its
// tries, every further command gets only one until the remote answers again, so that not each of them waits out an outage.
// It is safe for concurrent use; a nil Tries repeats nothing.
type Tries struct {
	// Sleep waits between two tries; nil: real time.
	Sleep func(ctx context.Context, d time.Duration) error
	// Watch is called when a command begins, and end when it has ended, with all its tries; nil: nobody watches.
	Watch func(remote string) (end func())

	exhausted atomic.Bool // the last command has used up its tries
}

// WithTries sets the tries that commands with the remote share.
func (g Runner) WithTries(t *Tries) Runner {
	g.tries = t
	return g
}

// do runs the command until it succeeds, fails permanently, or has used up the tries.
func (t *Tries) do(ctx context.Context, remote string, command func() error) error {
	if t == nil {
		return command()
	}
	if t.Watch != nil {
		defer t.Watch(remote)()
	}
	err := command()
	sleep := t.Sleep
	if sleep == nil {
		sleep = retry.Sleep
	}
	for n := 1; isTemporary(err) && n < retry.Attempts && !t.exhausted.Load(); n++ {
		if stopped := sleep(ctx, retry.Pause(n)); stopped != nil {
			return errors.Join(stopped, err)
		}
		err = command()
	}
	t.exhausted.Store(isTemporary(err))
	return err
}

// httpStatus matches the HTTP status in git's messages.
var httpStatus = pattern.Lazy(`(?:returned error: |HTTP )(\d{3})\b`)

// isTemporary reports whether a failure may be temporary. Git has no error codes for this, so it matches messages, which
// LC_ALL keeps in English.
func isTemporary(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	var ownLines strings.Builder
	for line := range strings.Lines(failed.Stderr) {
		if strings.Contains(line, "not our ref") || strings.Contains(line, "does not support --atomic") { // the object or the feature is missing for good
			return false
		}
		if !strings.HasPrefix(line, "remote:") { // skip messages of programs on the server, such as hooks
			ownLines.WriteString(line)
		}
	}
	if m := httpStatus().FindStringSubmatch(ownLines.String()); m != nil {
		const timeout, tooMany, serverError = 408, 429, 500 // importing net/http only for these would link it
		status, _ := strconv.Atoi(m[1])                     // digits
		return status >= serverError || status == timeout || status == tooMany
	}
	text := strings.ToLower(ownLines.String())
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
