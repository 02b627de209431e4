package workspace

import (
	"context"
	"sync"
	"time"
)

type tellingKey struct{}

// Telling derives a context in which say is told of the first Await that takes longer than after, and of none after it.
func Telling(ctx context.Context, after time.Duration, say func(what string)) context.Context {
	var once sync.Once
	return context.WithValue(ctx, tellingKey{}, func(what string) (over func() bool) {
		return time.AfterFunc(after, func() { once.Do(func() { say(what) }) }).Stop
	})
}

// Await says what the remote is waited for from now on, such as "fetching x from". The function it returns is for when that is over.
func Await(ctx context.Context, what string) (over func() bool) {
	if tell, ok := ctx.Value(tellingKey{}).(func(string) func() bool); ok {
		return tell(what)
	}
	return func() bool { return false }
}
