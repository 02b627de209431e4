package git

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestPassing lists git's messages about failures, and whether the failure is temporary.
func TestPassing(t *testing.T) {
	t.Parallel()
	for stderr, want := range map[string]bool{
		"fatal: unable to access 'https://h/r/': The requested URL returned error: 503\n": true,
		"fatal: unable to access 'https://h/r/': The requested URL returned error: 403\n": false,
		"error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\n":     true,
		"error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\nsend-pack: unexpected disconnect\n" +
			"fatal: the remote end hung up unexpectedly\n": false,
		"fatal: unable to access 'https://h/r/': Could not resolve host: h\n":                        true,
		"ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote":      true,
		"git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n":     false,
		"fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote\n":    false,
		"fatal: early EOF\nfatal: fetch-pack: invalid index-pack output\n":                           true,
		"fatal: git upload-pack: not our ref 0123\nfatal: the remote end hung up unexpectedly\n":     false,
		"remote: the scanner says HTTP 500\n ! [remote rejected] a -> a (pre-receive hook declined)": false,
	} {
		if got := isTemporary(fmt.Errorf("push: %w", &Error{ExitCode: 128, Stderr: stderr})); got != want {
			t.Errorf("%q passes: %v, want %v", stderr, got, want)
		}
	}
	if isTemporary(errors.New("returned error: 503")) || isTemporary(nil) {
		t.Error("what is no failure of git passes")
	}
}

// A temporary failure is retried after growing pauses. During an outage there is one attempt per command.
func TestTries(t *testing.T) {
	t.Parallel()
	away, refused := &Error{Stderr: "fatal: early EOF"}, &Error{Stderr: "fatal: no"}
	var slept []time.Duration
	tries := &Tries{Sleep: func(_ context.Context, d time.Duration) error {
		slept = append(slept, d)
		return nil
	}}
	for _, step := range []struct {
		answers []error // results of the first calls; the last one is for all further calls
		calls   int
		want    error
	}{
		{[]error{nil}, 1, nil},
		{[]error{away, away, nil}, 3, nil},
		{[]error{away, refused}, 2, refused},
		{[]error{away}, 4, away},
		{[]error{away}, 1, away},
		{[]error{refused}, 1, refused},
		{[]error{away, nil}, 2, nil},
	} {
		calls, pauses := 0, len(slept)
		err := tries.do(t.Context(), "origin", func() error {
			calls++
			return step.answers[min(calls, len(step.answers))-1]
		})
		if calls != step.calls || !errors.Is(err, step.want) || err == nil != (step.want == nil) {
			t.Errorf("%v: %d calls, %v; want %d, %v", step.answers, calls, err, step.calls, step.want)
		}
		for n, pause := range slept[pauses:] {
			if least := 500 * time.Millisecond << n; pause < least || pause > 2*least {
				t.Errorf("pause %d is %v", n, pause)
			}
		}
	}
	stop := errors.New("stopped")
	tries.Sleep = func(context.Context, time.Duration) error { return stop }
	if err := tries.do(t.Context(), "origin", func() error { return away }); !errors.Is(err, stop) {
		t.Errorf("a wait that ends: %v", err)
	}
}
