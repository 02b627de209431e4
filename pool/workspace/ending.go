package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/worktree"
)

// Ending has the limits of imports once the process is to end. The zero value has none.
type Ending struct {
	Soon  <-chan struct{} // when closed, an import has Grace left, counted from its own start if that is later
	Grace time.Duration
	Now   <-chan struct{} // when closed, an import has a moment left
}

// briefLimit is enough for the import of a usual worktree.
const briefLimit = 5 * time.Second

var (
	errEndAsked   = errors.New("ralph was asked to end")
	errEndNow     = errors.New("ralph was asked to end at once")
	errRemoteLate = fmt.Errorf("%w: there was no answer when the run had to end", worktree.ErrUnavailable)
)

// forImport derives the context of an import.
func (e Ending) forImport(ctx context.Context) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go cancelAfter(limited, cancel, e.Soon, max(e.Grace, briefLimit), errEndAsked)
	go cancelAfter(limited, cancel, e.Now, briefLimit, errEndNow)
	return limited, func() { cancel(nil) }
}

// Limits of the stages after the agent when a run is cut short: of each stage, and of each when everything is to end at once; see
// also killedTotalLimit. The next start does the rest.
const (
	stageLimit       = 2 * time.Minute
	killedStageLimit = 10 * time.Second
)

// Hurried derives a context for work that has to be done although ctx has ended.
func (e Ending) Hurried(ctx context.Context) (context.Context, context.CancelFunc) {
	timed, stop := context.WithTimeout(context.WithoutCancel(ctx), stageLimit)
	limited, cancel := context.WithCancelCause(timed)
	go cancelAfter(limited, cancel, e.Now, killedStageLimit, errEndNow)
	return limited, func() { cancel(nil); stop() }
}

// Hurried derives a context for work that has to be done although ctx has ended, or may end.
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

// WithRemoteGrace is WithGrace for a step that waits for a remote or a tracker while the work is safe. The step has at least a
// moment, and its end counts as an outage.
func WithRemoteGrace(ctx context.Context, asked <-chan struct{}, grace time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go cancelAfter(limited, cancel, asked, max(grace, briefLimit), errRemoteLate)
	return limited, func() { cancel(nil) }
}

// WithReleaseTime is Hurried for releasing what a run holds: once Soon is closed, only a moment is left.
func (e Ending) WithReleaseTime(ctx context.Context) (context.Context, context.CancelFunc) {
	hurried, cancel := e.Hurried(ctx)
	limited, free := WithGrace(hurried, e.Soon, briefLimit)
	return limited, func() { free(); cancel() }
}

// WithGrace derives a context that ends when asked is closed and the grace period after that is over.
func WithGrace(ctx context.Context, asked <-chan struct{}, grace time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	go cancelAfter(limited, cancel, asked, grace, errEndAsked)
	return limited, func() { cancel(nil) }
}

// EndedBy derives a context that also ends with other, with the cause of other. other may be nil.
func EndedBy(ctx, other context.Context) (context.Context, context.CancelFunc) {
	joined, cancel := context.WithCancelCause(ctx)
	free := func() bool { return true }
	if other != nil {
		free = context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	}
	return joined, func() { free(); cancel(nil) }
}

// WithExtraTime derives a context that ends a moment after ctx, for releasing what a run holds: a remote that hangs must not delay
// the end for long.
func WithExtraTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return WithGrace(context.WithoutCancel(ctx), ctx.Done(), briefLimit)
}

// WithReleaseTime is WithExtraTime for a call whose caller has stopped waiting: the context also ends a moment after soft.
func WithReleaseTime(soft, ctx context.Context) (context.Context, context.CancelFunc) {
	outlasting, cancel := WithExtraTime(ctx)
	limited, free := WithGrace(outlasting, soft.Done(), briefLimit)
	return limited, func() { free(); cancel() }
}

// killedTotalLimit is the limit of all remaining work together when everything is to end at once.
const killedTotalLimit = 30 * time.Second

type boundKey struct{}

// Bounded derives a context. All contexts that the functions of this file derive from it end at the latest killedTotalLimit after
// life.
func Bounded(ctx, life context.Context) (bounded context.Context, free func() bool) {
	last := make(chan struct{})
	free = context.AfterFunc(life, func() { time.AfterFunc(killedTotalLimit, func() { close(last) }) })
	return context.WithValue(ctx, boundKey{}, last), free
}

// cancelAfter cancels a context when the grace period after asked is over, or when its bound is reached.
func cancelAfter(ctx context.Context, cancel context.CancelCauseFunc, asked <-chan struct{}, grace time.Duration, why error) {
	last, _ := ctx.Value(boundKey{}).(chan struct{})
	var over <-chan time.Time
	for {
		select {
		case <-asked:
			asked, over = nil, time.After(grace)
		case <-over:
			cancel(why)
		case <-last:
			cancel(errEndNow)
		case <-ctx.Done():
			return
		}
	}
}
