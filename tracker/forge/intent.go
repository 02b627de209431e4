package forge

import (
	"context"
	"net/http"
)

type intentKey struct{}

type intent struct {
	read, repeatable bool
	tail             int
}

func intentOf(ctx context.Context) intent {
	i, _ := ctx.Value(intentKey{}).(intent)
	return i
}

// Reading says that the requests of ctx change nothing, whatever their method; GraphQL queries are POST.
func Reading(ctx context.Context) context.Context {
	i := intentOf(ctx)
	i.read, i.repeatable = true, true
	return context.WithValue(ctx, intentKey{}, i)
}

// Repeatable says that repeating the requests of ctx does no harm, though their method is POST or PATCH: adding a
// label, or setting a text.
func Repeatable(ctx context.Context) context.Context {
	i := intentOf(ctx)
	i.repeatable = true
	return context.WithValue(ctx, intentKey{}, i)
}

// LastBytes says that of the answers to ctx only the last n bytes are of interest, such as of a log. They are read
// whole, however long, and are never kept in a cache.
func LastBytes(ctx context.Context, n int) context.Context {
	i := intentOf(ctx)
	i.tail = n
	return context.WithValue(ctx, intentKey{}, i)
}

func reads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || intentOf(r.Context()).read
}

func repeatable(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions:
		return true
	}
	return intentOf(r.Context()).repeatable
}
