package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// checkContexts calls Check with an ended context, opens a sandbox, ends the context of a running command, and calls Close with a
// context that ends. The error names the call that has not returned long after its context ended: all other tests would
// hang on it.
func checkContexts(ctx context.Context, p sandboxes.Provider, spec sandboxes.Spec) error {
	ended, end := context.WithCancelCause(ctx)
	end(errStop)
	err := checkReturns(ended, "Check", func() error {
		_ = p.Check(ended) // any result is fine
		return nil
	})
	if err != nil {
		return err
	}
	opening, cancel := context.WithTimeoutCause(ctx, limit, errors.New("Open has taken too long"))
	defer cancel()
	var box sandboxes.Sandbox
	err = checkReturns(opening, "Open", func() (err error) {
		box, err = p.Open(opening, spec)
		return err
	})
	if err != nil {
		return err
	}
	cancel() // must not affect the sandbox
	limited, done := context.WithTimeoutCause(ctx, limit, errors.New("Exec has taken too long"))
	defer done()
	running, stop := context.WithCancelCause(limited)
	defer stop(nil)
	out := writerFunc(func(text []byte) (int, error) {
		stop(errStop) // the command runs
		return len(text), nil
	})
	err = checkReturns(running, "Exec", func() error {
		_, err := box.Exec(running, sandboxes.Command{Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}, Stdout: out})
		if !errors.Is(err, errStop) {
			return fmt.Errorf("Exec gives %s, want the context's cause", fmt.Sprint(err)) // err may be nil
		}
		return nil
	})
	closing, enough := context.WithTimeoutCause(ctx, limit, errors.New("Close has taken too long"))
	defer enough()
	return errors.Join(err, checkReturns(closing, "Close", func() error { return box.Close(closing) }))
}

// checkReturns returns the error of a call, or an error that the call ignores its context.
func checkReturns(ctx context.Context, name string, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("%s ignores its context: it has not returned %s after that ended", name, limit)
	}
}
