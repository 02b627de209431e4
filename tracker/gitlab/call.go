package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hashicorp/go-retryablehttp"
	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	perPage  = 100 // the most that GitLab gives
	maxPages = 1000
)

// unlimited lets every request pass: the stack below knows the limits.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// project is a path below the project.
func (t *Tracker) project(format string, args ...any) string {
	return "projects/" + gl.PathEscape(t.cfg.Project.Path) + fmt.Sprintf(format, args...)
}

// get reads something into out.
func (t *Tracker) get(ctx context.Context, path string, out any) error {
	_, err := t.call(ctx, http.MethodGet, path, nil, nil, out)
	return err
}

// one makes a request whose answer is one whole thing.
func one[T forge.Part](ctx context.Context, t *Tracker, method, path string, body any) (T, error) {
	var out T
	_, err := t.call(ctx, method, path, nil, body, &out)
	return out, err
}

// call makes one request and decodes its answer into out, a pointer or an io.Writer; nil: the answer
// tells nothing.
func (t *Tracker) call(ctx context.Context, method, path string, query url.Values, body, out any) (*gl.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// The stack decodes, so that an answer of another form is as one that was cut.
	if _, raw := out.(io.Writer); out != nil && !raw {
		ctx, out = forge.Decoded(ctx, out), nil
	}
	ask := func(r *retryablehttp.Request) error {
		r.URL.RawQuery = query.Encode()
		return nil
	}
	req, err := t.api.NewRequest(method, path, body, []gl.RequestOptionFunc{gl.WithContext(ctx), ask})
	if err != nil {
		return nil, fmt.Errorf("make request %s %s: %w", method, path, err)
	}
	resp, err := t.api.Do(req, out)
	if err != nil {
		return nil, explain(ctx, resp, err)
	}
	return resp, nil
}

// explain turns what go-gitlab returned into the seam's errors.
func explain(ctx context.Context, resp *gl.Response, err error) error {
	var raw *http.Response
	if resp != nil {
		raw = resp.Response
	}
	message := ""
	var refused *gl.ErrorResponse
	if errors.As(err, &refused) && json.Valid(refused.Body) { // else a page made for browsers
		message = refused.Message
	}
	return forge.Explain(ctx, raw, message, err)
}

// pages reads a list to its end, by the links that GitLab gives: positions where it knows them for this list, so that
// nothing is missed or read twice when the list changes meanwhile, else numbers.
func pages[T forge.Part](ctx context.Context, t *Tracker, path string, query url.Values) ([]T, error) {
	var all []T
	err := eachPage(ctx, t, path, query, func(some []T) bool {
		all = append(all, some...)
		return true
	})
	return all, err
}

// eachPage gives each page to take, until it returns false.
func eachPage[T forge.Part](ctx context.Context, t *Tracker, path string, query url.Values, take func([]T) bool) error {
	q := url.Values{}
	for k, v := range query {
		q[k] = v
	}
	q.Set("per_page", strconv.Itoa(perPage))
	for range maxPages {
		var some forge.List[T]
		resp, err := t.call(ctx, http.MethodGet, path, q, nil, &some)
		if err != nil {
			return err
		}
		if !take(some) || !follow(q, resp) {
			return nil
		}
	}
	return fmt.Errorf("list %s: more than %d pages", path, maxPages)
}

// follow makes q ask for the next page; false when there is none. Of a link only the position is taken: behind a proxy
// its host may be one that nobody else knows.
func follow(q url.Values, resp *gl.Response) bool {
	if next, err := url.Parse(resp.NextLink); err == nil {
		if cursor := next.Query().Get("cursor"); cursor != "" && cursor != q.Get("cursor") {
			q.Set("cursor", cursor)
			return true
		}
	}
	if now, _ := strconv.Atoi(q.Get("page")); resp.NextPage > max(now, 1) {
		q.Set("page", strconv.Itoa(resp.NextPage))
		return true
	}
	return false
}
