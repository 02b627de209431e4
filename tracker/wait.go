package tracker

import (
	"context"
	"sync"
	"time"
)

type waitKey struct{}

// WithWait returns a context whose requests call notify before they wait for the server's rate limit, once for each later end of the
// wait. A wait may be long, and people take it for a hang.
func WithWait(ctx context.Context, notify func(until time.Time)) context.Context {
	var mu sync.Mutex
	var last time.Time
	return context.WithValue(ctx, waitKey{}, func(until time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if until.After(last) {
			last = until
			notify(until)
		}
	})
}

// NotifyWait reports a wait to the function of [WithWait]. Trackers call it before they wait.
func NotifyWait(ctx context.Context, until time.Time) {
	if notify, ok := ctx.Value(waitKey{}).(func(time.Time)); ok {
		notify(until)
	}
}
