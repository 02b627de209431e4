package tracker

import (
	"context"
	"sync"
	"time"
)

type waitKey struct{}

// WithWait has told called when a request made with the context waits for the server's rate limit: once for each time at which it
// goes on. A wait may be long, and people take it for a hang.
func WithWait(ctx context.Context, told func(until time.Time)) context.Context {
	var mu sync.Mutex
	var last time.Time
	return context.WithValue(ctx, waitKey{}, func(until time.Time) {
		mu.Lock()
		defer mu.Unlock()
		if until.After(last) {
			last = until
			told(until)
		}
	})
}

// TellWait is called by trackers before they wait; see [WithWait].
func TellWait(ctx context.Context, until time.Time) {
	if told, ok := ctx.Value(waitKey{}).(func(time.Time)); ok {
		told(until)
	}
}
