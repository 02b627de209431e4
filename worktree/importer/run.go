package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Time limits for git in the sandbox, and for reading and checking its output. Only an import built to take forever reaches
// them.
const (
	scriptTimeout = 10 * time.Minute
	readTimeout   = scriptTimeout + git.TransferTime
)

// ErrLate means that an import did not end in time. Another one would not either.
var ErrLate = errors.New("the import did not end in time")

// ErrInside means that the sandbox failed. Asking it for less would not help.
var ErrInside = errors.New("git in the sandbox failed")

// ErrAway means that the user's repository is not at its path: it was moved, or its disk is not mounted.
var ErrAway = errors.New("the repository is gone from its path")

// Run runs a [Script] with exec and reads its output.
func Run(ctx context.Context, exec func(ctx context.Context, stdout, stderr io.Writer) (exit int, err error), o Options) (*Quarantine, error) {
	from, to := io.Pipe()
	type result struct {
		q   *Quarantine
		err error
	}
	results := make(chan result, 1)
	reading, stop := context.WithTimeoutCause(ctx, readTimeout, fmt.Errorf("%w: it did not end within %s", ErrLate, readTimeout))
	defer stop()
	go func() {
		q, err := Read(reading, from, o)
		_ = from.CloseWithError(err) // always nil
		results <- result{q, err}
	}()
	limit, cancel := context.WithTimeoutCause(ctx, scriptTimeout, fmt.Errorf("%w: it did not end within %s", ErrLate, scriptTimeout))
	defer cancel()
	stderr := proc.NewTail(4 << 10)
	code, err := exec(limit, to, stderr)
	timeoutErr := context.Cause(limit) // checked here, because reading the rest of the output may take longer
	_ = to.Close()                     // always nil
	answer := <-results
	switch {
	case err != nil && timeoutErr != nil:
		err = fmt.Errorf("%w: %w", ErrInside, timeoutErr)
	case err != nil && (answer.err == nil || !errors.Is(err, answer.err)): // otherwise the error is about our closed end of the pipe
		err = fmt.Errorf("%w: %w", ErrInside, err)
	case err == nil && code != 0 && timeoutErr != nil:
		err = fmt.Errorf("%w: %w", ErrInside, timeoutErr)
	case err == nil && code != 0:
		err = &exitError{code, stderr.String()}
	default:
		return answer.q, answer.err
	}
	if answer.q != nil {
		err = errors.Join(err, answer.q.Close())
	}
	return nil, err
}
