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
	after := func(asked <-chan struct{}, grace time.Duration, why error) {
		select {
		case <-asked:
		case <-limited.Done():
			return
		}
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(why)
		case <-limited.Done():
		}
	}
	go after(e.Soon, max(e.Grace, moment), errSoon)
	go after(e.Now, moment, errNow)
	return limited, func() { cancel(nil) }
}
