package forge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/rs/zerolog"
)

// firstBackoff is the pause before the second attempt; each further one is twice as long, and none exactly.
const firstBackoff = 500 * time.Millisecond

// retry repeats what may be repeated, when the failure may pass. It is the outermost layer.
type retry struct {
	next     http.RoundTripper
	clock    Clock
	attempts int
	log      zerolog.Logger
}

func (y *retry) RoundTrip(r *http.Request) (*http.Response, error) {
	r, err := rereadable(r)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		out, err := rewind(r)
		if err != nil {
			return nil, err
		}
		resp, err := y.next.RoundTrip(out)
		if n >= y.attempts || !repeatable(r) || !passing(resp, err) || r.Context().Err() != nil {
			return resp, err
		}
		y.log.Debug().Str("method", r.Method).Str("path", r.URL.Path).Int("attempt", n).Msg("repeat request")
		pause := firstBackoff << (n - 1)
		pause += rand.N(pause) //nolint:gosec // spreads clients, guards nothing
		if err := y.clock.Sleep(r.Context(), pause); err != nil {
			return nil, err
		}
	}
}

// passing reports a failure that may be gone the next time.
func passing(resp *http.Response, err error) bool {
	if err != nil {
		var f *Failure
		return errors.As(err, &f) && f.Action == Retry
	}
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// rereadable gives a request whose body can be read again.
func rereadable(r *http.Request) (*http.Request, error) {
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
