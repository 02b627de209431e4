package workspace

import (
	"context"
	"sync"
	"time"
)

type tellingKey struct{}

// Telling derives a context in which the first Await that takes longer than after calls say. Later ones do not.
func Telling(ctx context.Context, after time.Duration, say func(what string)) context.Context {
	var once sync.Once
	return context.WithValue(ctx, tellingKey{}, func(what string) (over func() bool) {
		return time.AfterFunc(after, func() { once.Do(func() { say(what) }) }).Stop
	})
}

// Await notes the start of a wait for the remote; what describes it, such as "fetching x from". The caller calls over at its end.
func Await(ctx context.Context, what string) (over func() bool) {
	if tell, ok := ctx.Value(tellingKey{}).(func(string) func() bool); ok {
		return tell(what)
	}
	return func() bool { return false }
}
