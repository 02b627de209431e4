package transport

import (
	"context"
	"net/http"
)

type intentKey struct{}

// intent holds the caller's instructions for the requests of a context.
type intent struct {
	read, repeatable, bypassCache bool
	followRedirects               bool
	tail                          int
	page                          int  // maximum number of entries in the answer; 0: not a list
	skipLong                      bool // treat a page that is too long as empty
	check                         func([]byte) error
}

func intentOf(ctx context.Context) intent {
	i, _ := ctx.Value(intentKey{}).(intent)
	return i
}

func withIntent(ctx context.Context, change func(*intent)) context.Context {
	i := intentOf(ctx)
	change(&i)
	return context.WithValue(ctx, intentKey{}, i)
}

// WithReadOnly declares that the requests of ctx change nothing, whatever their method; GraphQL queries are POST.
func WithReadOnly(ctx context.Context) context.Context {
	return withIntent(ctx, func(i *intent) { i.read, i.repeatable = true, true })
}

// WithIdempotent declares that the requests of ctx are idempotent although their method is POST or PATCH, such as adding a label
// or setting a text.
func WithIdempotent(ctx context.Context) context.Context {
	return withIntent(ctx, func(i *intent) { i.repeatable = true })
}

// LastBytes keeps only the last n bytes of the answers to ctx, such as of a log. They are read to the end and never cached.
func LastBytes(ctx context.Context, n int) context.Context {
	return withIntent(ctx, func(i *intent) { i.tail = n })
}

// WithoutCache makes the requests of ctx bypass every cache.
func WithoutCache(ctx context.Context) context.Context {
	return withIntent(ctx, func(i *intent) { i.bypassCache = true })
}

// Follow lets reads of ctx follow redirects to an issue or project that has moved.
func Follow(ctx context.Context) context.Context {
	return withIntent(ctx, func(i *intent) { i.followRedirects = true })
}

// Check makes the stack check each success answer to ctx. An answer that fails is treated like a truncated one: the request is
// repeated if that is safe, the answer is never cached, and the effect of a write is uncertain. The check may run several times.
func Check(ctx context.Context, check func(body []byte) error) context.Context {
	return withIntent(ctx, func(i *intent) { i.check = check })
}

func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || intentOf(r.Context()).read
}

func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return true
	}
	return intentOf(r.Context()).repeatable
}
