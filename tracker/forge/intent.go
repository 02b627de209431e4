package forge

import (
	"context"
	"net/http"
)

type intentKey struct{}

type intent struct {
	read, repeatable, fresh bool
	tail                    int
	into                    func([]byte) error
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

// Fresh says that the answers to ctx have to be new ones: nothing kept is offered for them.
func Fresh(ctx context.Context) context.Context {
	i := intentOf(ctx)
	i.fresh = true
	return context.WithValue(ctx, intentKey{}, i)
}

// Into says how the answers to ctx are read. A success that decode refuses is as one that was cut: it is asked for
// again where that does no harm, is never kept in a cache, and of a write nobody knows whether it happened. Decode may
// be called several times; its last success is the answer.
func Into(ctx context.Context, decode func(body []byte) error) context.Context {
	i := intentOf(ctx)
	i.into = decode
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
