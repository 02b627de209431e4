package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
)

// retrier retries repeatable requests after temporary failures. It is the outermost layer.
type retrier struct {
	next     http.RoundTripper
	clock    Clock
	attempts int
	log      *slog.Logger
}

func (y *retrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := withRereadableBody(r)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		out, err := copyRequest(r)
		if err != nil {
			return nil, err
		}
		resp, err := y.next.RoundTrip(out)
		if n >= y.attempts || !repeatable(r) || !isTemporary(resp, err) || r.Context().Err() != nil {
			return resp, err
		}
		y.log.Debug("repeat request", "method", r.Method, "path", r.URL.Path, "attempt", n)
		if err := y.clock.Sleep(r.Context(), retry.Pause(n)); err != nil {
			return nil, err
		}
	}
}

// isTemporary reports whether a failure may be temporary.
func isTemporary(resp *http.Response, err error) bool {
	if err != nil {
		f, ok := errors.AsType[*Failure](err)
		return ok && f.Action == Retry
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// withRereadableBody returns a request whose body can be read again.
func withRereadableBody(r *http.Request) (*http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody || r.GetBody != nil {
		return r, nil
	}
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, r.Body.Close()); err != nil {
		return nil, fmt.Errorf("read the body of %s %s: %w", r.Method, r.URL.Path, err)
	}
	out := r.Clone(r.Context())
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return out, nil
}

// replicaDelay is the time for the replicas of a forge to synchronise.
const replicaDelay = time.Second

// RetryNotFound calls ask, and after "not found" once more, past every cache: the replicas of a forge may learn of an object at
// different times.
func (s *Stack) RetryNotFound(ctx context.Context, ask func(context.Context) error) error {
	err := ask(ctx)
	if !Missing(err) {
		return err
	}
	if err := s.clock.Sleep(ctx, replicaDelay); err != nil {
		return err
	}
	return ask(WithoutCache(ctx))
}
