package workspace

import (
	"context"
	"errors"
	"time"
)

// Ending says that the process is to end, which shortens imports. Zero values mean that it is not.
type Ending struct {
	Soon  <-chan struct{} // an import has Grace from then on, or from its own beginning if that is later
	Grace time.Duration
	Now   <-chan struct{} // an import has only a moment
}

// moment is enough for the import of a usual worktree.
const moment = 5 * time.Second

var (
	errSoon = errors.New("ralph was asked to end")
	errNow  = errors.New("ralph was asked to end at once")
)

// limit derives the context of an import.
func (e Ending) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go late(limited, cancel, e.Soon, max(e.Grace, moment), errSoon)
	go late(limited, cancel, e.Now, moment, errNow)
	return limited, func() { cancel(nil) }
}

// Within derives a context that ends when the grace is over that begins when asked is closed.
func Within(ctx context.Context, asked <-chan struct{}, grace time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go late(limited, cancel, asked, grace, errSoon)
	return limited, func() { cancel(nil) }
}

// late ends a context a while after asked is closed.
func late(ctx context.Context, cancel context.CancelCauseFunc, asked <-chan struct{}, grace time.Duration, why error) {
	select {
	case <-asked:
	case <-ctx.Done():
		return
	}
	over := time.NewTimer(grace)
	defer over.Stop()
	select {
	case <-over.C:
		cancel(why)
	case <-ctx.Done():
	}
}
