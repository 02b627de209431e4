package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/pool/halt"
	"github.com/ralph-pool/ralph/worktree"
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
	errLate = fmt.Errorf("%w: it had not answered when the run had to end", worktree.ErrAway)
)

// limit derives the context of an import.
func (e Ending) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go late(limited, cancel, e.Soon, max(e.Grace, moment), errSoon)
	go late(limited, cancel, e.Now, moment, errNow)
	return limited, func() { cancel(nil) }
}

// What comes after the agent when a run is cut short has hurry for each stage, and atOnce when everything is to end, within total:
// the next start does the rest.
const (
	hurry  = 2 * time.Minute
	atOnce = 10 * time.Second
)

// Hurried is for what has to be done although ctx has ended.
func (e Ending) Hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	timed, stop := context.WithTimeout(context.WithoutCancel(ctx), hurry)
	limited, cancel := context.WithCancelCause(timed)
	go late(limited, cancel, e.Now, atOnce, errNow)
	return limited, func() { cancel(nil); stop() }
}

// Hurried is for what has to be done although ctx has ended, or may end.
func Hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	now := make(chan struct{})
	unbind := context.AfterFunc(ctx, func() {
		if halt.Shutdown(context.Cause(ctx)) {
			close(now)
		}
	})
	limited, cancel := Ending{Now: now}.Hurried(ctx)
	return limited, func() { unbind(); cancel() }
}

// Waiting is Within for a step that waits for a remote or a tracker while the work is safe. It has a moment at least, and its end
// counts as an outage.
func Waiting(ctx context.Context, asked <-chan struct{}, grace time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go late(limited, cancel, asked, max(grace, moment), errLate)
	return limited, func() { cancel(nil) }
}

// Leaving is Hurried for giving back what a run holds: it has only a moment once Soon is closed.
func (e Ending) Leaving(ctx context.Context) (context.Context, context.CancelFunc) {
	hurried, cancel := e.Hurried(ctx)
	limited, free := Within(hurried, e.Soon, moment)
	return limited, func() { free(); cancel() }
}

// Within derives a context that ends when the grace is over that begins when asked is closed.
func Within(ctx context.Context, asked <-chan struct{}, grace time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go late(limited, cancel, asked, grace, errSoon)
	return limited, func() { cancel(nil) }
}

// EndedBy derives a context that another one ends too, with its cause. A nil one ends nothing.
func EndedBy(ctx, other context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	free := func() bool { return true }
	if other != nil {
		free = context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	}
	return joined, func() { free(); cancel(nil) }
}

// Outlasting derives a context that ends a moment after ctx, for giving back what a run holds: nothing waits long for a remote
// that hangs.
func Outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	return Within(context.WithoutCancel(ctx), ctx.Done(), moment)
}

// Leaving is Outlasting for a call that nobody waits for any more, either, a moment after the end of soft.
func Leaving(soft, ctx context.Context) (context.Context, context.CancelFunc) {
	outlasting, cancel := Outlasting(ctx)
	limited, free := Within(outlasting, soft.Done(), moment)
	return limited, func() { free(); cancel() }
}

// total is for everything that is left when everything is to end at once, together.
const total = 30 * time.Second

type boundKey struct{}

// Bounded derives a context. Whatever outlasts it, or a context derived from it, ends at the latest a while after life does.
func Bounded(ctx, life context.Context) (bounded context.Context, free func() bool) {
	last := make(chan struct{})
	free = context.AfterFunc(life, func() { time.AfterFunc(total, func() { close(last) }) })
	return context.WithValue(ctx, boundKey{}, last), free
}

// late ends a context a while after asked is closed, or when its bound is reached.
func late(ctx context.Context, cancel context.CancelCauseFunc, asked <-chan struct{}, grace time.Duration, why error) {
	last, _ := ctx.Value(boundKey{}).(chan struct{})
	var over <-chan time.Time
	for {
		select {
		case <-asked:
			asked, over = nil, time.After(grace)
		case <-over:
			cancel(why)
		case <-last:
			cancel(errNow)
		case <-ctx.Done():
			return
		}
	}
}
