package workspace

import (
	"context"
	"sync"
	"time"
)

type slowWaitKey struct{}

// WithSlowWait derives a context in which the first BeginWait whose wait takes longer than after calls say. Later ones do not.
func WithSlowWait(ctx context.Context, after time.Duration, say func(what string)) context.Context {
	var once sync.Once
	return context.WithValue(ctx, slowWaitKey{}, func(what string) (over func() bool) {
		return time.AfterFunc(after, func() { once.Do(func() { say(what) }) }).Stop
	})
}

// BeginWait notes the start of a wait for the remote; what describes it, such as "fetching x from". The caller calls over at
// its end.
func BeginWait(ctx context.Context, what string) (over func() bool) {
	if tell, ok := ctx.Value(slowWaitKey{}).(func(string) func() bool); ok {
		return tell(what)
	}
	return func() bool { return false }
}
