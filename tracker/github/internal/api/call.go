// Package api makes ralph's requests to GitHub: pages, GraphQL, the login as a GitHub App, and the conversion of errors to those
// of package tracker. Package tracker/github uses it. Everything here is safe for concurrent use.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

const notFound = "NOT_FOUND" // type of a GraphQL error

// Client returns go-github's client on top of a stack.
func Client(stack *transport.Stack, base *url.URL) *gh.Client {
	c := stack.Client()
	c.Transport = unlimited{stack}
	api := gh.NewClient(c)
	api.BaseURL = base
	return api
}

// unlimited hides rate limits from go-github, which would refuse requests by its own clock. The stack waits instead.
type unlimited struct{ next http.RoundTripper }

func (u unlimited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.next.RoundTrip(r)
	if err == nil {
		resp.Header.Set("X-From-Cache", "1")
	}
	return resp, err
}

// One makes a call that returns one complete object.
func One[T any](ctx context.Context, complete func(*T) bool, call func(context.Context) (*T, *gh.Response, error)) (*T, error) {
	v, resp, err := call(transport.Expect(ctx, complete))
	return v, Explain(ctx, resp, err)
}

// Page requests one page of a list.
type Page[T any] func(context.Context, gh.ListOptions) ([]*T, *gh.Response, error)

// Each passes each page of a list to visit, until visit returns false. With a nil complete, entries may be anything. A short page is
// not always the last, since GitHub omits hidden entries, and an unchanged page may have a Link header from before the next page
// existed.
func Each[T any](ctx context.Context, complete func(*T) bool, call Page[T], visit func([]*T) bool) error {
	return transport.Pages(transport.ExpectList(ctx, complete), func(ctx context.Context, number, size int) (more bool, err error) {
		some, resp, err := call(ctx, gh.ListOptions{Page: number, PerPage: size})
		if err != nil {
			return false, Explain(ctx, resp, err)
		}
		return visit(some) && (len(some) >= size || resp.NextPage != 0), nil
	})
}

// All reads all pages of a list.
func All[T any](ctx context.Context, complete func(*T) bool, call Page[T]) (list []*T, err error) {
	err = Each(ctx, complete, call, func(some []*T) bool {
		list = append(list, some...)
		return true
	})
	return list, err
}

// Explain converts go-github's error to one of package tracker.
func Explain(ctx context.Context, resp *gh.Response, err error) error {
	var raw *http.Response
	if resp != nil {
		raw = resp.Response
	}
	message := ""
	if refused, ok := errors.AsType[*gh.ErrorResponse](err); ok {
		message = refused.Message
		for _, e := range refused.Errors {
			message += ": " + cmp.Or(e.Message, strings.TrimSpace(e.Resource+" "+e.Field+" "+e.Code))
		}
	}
	return transport.Explain(ctx, raw, message, err)
}

// Graph is a client of the GraphQL API.
type Graph struct {
	API         *gh.Client
	Address     string
	Owner, Name string // of the project
}

// Query makes one GraphQL request. GraphQL errors have status 200.
func Query[T any](ctx context.Context, g Graph, text string, variables map[string]any, complete func(*T) bool) (data *T, err error) {
	type refusal struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	type answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []refusal       `json:"errors"`
	}
	body := map[string]any{"query": text, "variables": variables}
	ctx = transport.Check(ctx, func(text []byte) error {
		a, err := transport.Decode(text, func(*answer) bool { return true })
		if err == nil && len(a.Errors) == 0 {
			_, err = transport.Decode(a.Data, complete)
		}
		return err
	})
	var a answer
	req, err := g.API.NewRequest(http.MethodPost, g.Address, body)
	if err != nil {
		return nil, err
	}
	if resp, err := g.API.Do(ctx, req, &a); err != nil {
		return nil, Explain(ctx, resp, err)
	}
	kept := slices.IndexFunc(a.Errors, func(e refusal) bool { return e.Type != notFound })
	if data, err = transport.Decode(a.Data, complete); kept < 0 && (err == nil || len(a.Errors) == 0) {
		return data, err // an entry of a list may be missing
	}
	e := a.Errors[max(kept, 0)]
	f := &transport.Failure{Method: http.MethodPost, Path: "/graphql", Action: transport.Skip, Reason: transport.Refused,
		Detail: "GitHub refuses the query (" + tracker.Line(cmp.Or(e.Message, e.Type), 200) + ")"}
	switch e.Type {
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		f.Action, f.Hint = transport.Stop, "give the token read permission for issues and pull requests"
	case "RATE_LIMITED":
		f.Action = transport.Wait
	case notFound:
		f.Status = http.StatusNotFound
	case "": // GitHub's own faults have no type
		f.Action = transport.Retry
	}
	return nil, transport.Explain(ctx, nil, "", f)
}
