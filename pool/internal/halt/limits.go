package halt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/worktree"
)

// Times that are left for one step; see the states of a run.
const (
	Moment           = 5 * time.Second // enough for the import of a usual worktree
	StageLimit       = 2 * time.Minute
	KilledStageLimit = 10 * time.Second
	killedTotalLimit = 30 * time.Second // for all steps together
)

var (
	// ErrAsked is the cause of the contexts whose grace period is over.
	ErrAsked      = errors.New("ralph was asked to end")
	errKilled     = errors.New("ralph was asked to end at once")
	errRemoteLate = fmt.Errorf("%w: there was no answer when the run had to end", worktree.ErrUnavailable)
)

// Limit is the time that is left after an event.
type Limit struct {
	After context.Context // its end is the event; nil: it never comes
	Left  time.Duration   // counted from the call of Within, if the event came before
	Cause error           // of the end of the derived context; nil: the cause of After
}

// Grace leaves a grace period after the request to end.
func Grace(asked context.Context, left time.Duration) Limit { return Limit{asked, left, ErrAsked} }

// RemoteGrace is Grace for a step that waits for a remote or a tracker while the work is safe. The step has at least a moment,
// and its end counts as an outage.
func RemoteGrace(asked context.Context, left time.Duration) Limit {
	return Limit{asked, max(left, Moment), errRemoteLate}
}

// Killed leaves some time after the kill of everything.
func Killed(ctx context.Context, left time.Duration) Limit {
	k, _ := ctx.Value(killKey{}).(kill)
	return Limit{k.asked, left, errKilled}
}

type killKey struct{}

// kill is in the values of a context, so that it also reaches the steps that outlast the end of that context.
type kill struct{ asked, over context.Context }

// WithKill derives a context that knows the kill of everything, which is the end of killed. The caller calls free at the end of
// all work.
func WithKill(ctx, killed context.Context) (known context.Context, free context.CancelFunc) {
	over, free := Within(context.WithoutCancel(killed), Limit{killed, killedTotalLimit, errKilled})
	return context.WithValue(ctx, killKey{}, kill{killed, over}), free
}

// Within derives a context that ends at the first limit, and when the time for all steps after the kill is over.
func Within(ctx context.Context, limits ...Limit) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancelCause(ctx)
	k, _ := ctx.Value(killKey{}).(kill)
	var unbind []func() bool
	for _, l := range append(limits, Limit{After: k.over}) {
		if l.After != nil {
			unbind = append(unbind, context.AfterFunc(l.After, func() {
				time.AfterFunc(l.Left, func() { cancel(cmp.Or(l.Cause, context.Cause(l.After))) })
			}))
		}
	}
	return limited, func() {
		for _, f := range unbind {
			f()
		}
		cancel(nil)
	}
}

// Hurried derives a context for a step that has to be done although ctx has ended, or may end.
func Hurried(ctx context.Context, limits ...Limit) (context.Context, context.CancelFunc) {
	timed, stop := context.WithTimeout(context.WithoutCancel(ctx), StageLimit)
	limited, cancel := Within(timed, append(limits, Killed(ctx, KilledStageLimit))...)
	return limited, func() { cancel(); stop() }
}

// ForRelease derives a context for releasing what a run holds. It ends a moment after ctx, or after the end of one of asked: a
// remote that hangs must not delay the end for long.
func ForRelease(ctx context.Context, asked ...context.Context) (context.Context, context.CancelFunc) {
	var limits []Limit
	for _, a := range append(asked, ctx) {
		limits = append(limits, Grace(a, Moment))
	}
	return Within(context.WithoutCancel(ctx), limits...)
}
