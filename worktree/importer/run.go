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

// How long git may take inside, and how long it may take here to read and check what comes. They only end what was made to
// take for ever.
const (
	insideTime = 10 * time.Minute
	readTime   = insideTime + git.TransferTime
)

// ErrLate says that an import did not end in time, which it would not the next time either.
var ErrLate = errors.New("the import did not end in time")

// ErrInside says that the sandbox did not do its part, which is no reason to ask it for less.
var ErrInside = errors.New("git in the sandbox failed")

// Run has exec run a [Script], and reads what it prints.
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
	late := context.Cause(limit) // reading what has come may take longer
	_ = to.Close()               // always nil
	got := <-read
	switch {
	case err != nil && late != nil:
		err = fmt.Errorf("%w: %w", ErrInside, late)
	case err != nil && (got.err == nil || !errors.Is(err, got.err)): // else it is our end of the pipe that it speaks of
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
