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
	insideTime = 10 * time.Minute
	readTime   = insideTime + git.TransferTime
)

// ErrLate means that an import did not end in time. Another one would not either.
var ErrLate = errors.New("the import did not end in time")

// ErrInside means that the sandbox failed. Asking it for less would not help.
var ErrInside = errors.New("git in the sandbox failed")

// Run runs a [Script] with exec and reads its output.
func Run(ctx context.Context, exec func(ctx context.Context, stdout, stderr io.Writer) (exit int, err error), o Options) (*Quarantine, error) {
	from, to := io.Pipe()
	type result struct {
		q   *Quarantine
		err error
	}
	read := make(chan result, 1)
	reading, stop := context.WithTimeoutCause(ctx, readTime, fmt.Errorf("%w: no end after %s", ErrLate, readTime))
	defer stop()
	go func() {
		q, err := Read(reading, from, o)
		_ = from.CloseWithError(err) // always nil
		read <- result{q, err}
	}()
	limit, cancel := context.WithTimeoutCause(ctx, insideTime, fmt.Errorf("%w: no end after %s", ErrLate, insideTime))
	defer cancel()
	stderr := proc.NewTail(4 << 10)
	code, err := exec(limit, to, stderr)
	late := context.Cause(limit) // checked here, because reading the rest of the output may take longer
	_ = to.Close()               // always nil
	got := <-read
	switch {
	case err != nil && late != nil:
		err = fmt.Errorf("%w: %w", ErrInside, late)
	case err != nil && (got.err == nil || !errors.Is(err, got.err)): // otherwise the error is about our closed end of the pipe
		err = fmt.Errorf("%w: %w", ErrInside, err)
	case err == nil && code != 0 && late != nil:
		err = fmt.Errorf("%w: %w", ErrInside, late)
	case err == nil && code != 0:
		err = &exitError{code, stderr.String()}
	default:
		return got.q, got.err
	}
	if got.q != nil {
		err = errors.Join(err, got.q.Close())
	}
	return nil, err
}
