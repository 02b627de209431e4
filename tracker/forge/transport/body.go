package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

var (
	errTimeout   = errors.New("no complete answer in time")
	errTooLong   = errors.New("the answer is too long")
	errMalformed = errors.New("the answer is not JSON")
	errForm      = errors.New(string(Unreadable))
)

// bodyReader reads the answer to its end within the timeout, so that a truncated body is detected before its use. It is the
// innermost layer.
type bodyReader struct {
	next    http.RoundTripper
	timeout time.Duration
	max     int64
	skew    *skew
	log     *slog.Logger
}

func (w *bodyReader) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), w.timeout, errTimeout)
	defer cancel()
	resp, err := w.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, w.fail(ctx, r, err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read, or is not needed
	w.skew.record(resp.Header)
	body, err := w.read(resp, intentOf(ctx))
	if errors.Is(err, errTooLong) && intentOf(ctx).skipLong {
		w.log.Warn("leave out a part of a list", "path", r.URL.Path, "entries", intentOf(ctx).page, "error", err)
		body, err = []byte("[]"), nil
	}
	if err != nil {
		return nil, w.fail(ctx, r, err)
	}
	// An invalid "JSON" answer was truncated or made by a proxy. Errors need not be JSON.
	if resp.StatusCode < 300 && len(body) > 0 && isJSON(resp.Header) && intentOf(ctx).tail == 0 && !json.Valid(body) {
		return nil, w.fail(ctx, r, errMalformed)
	}
	if check := intentOf(ctx).check; check != nil && resp.StatusCode < 300 {
		switch err := check(body); {
		case err == nil:
		case !json.Valid(body):
			return nil, w.fail(ctx, r, errMalformed)
		default:
			return nil, w.fail(ctx, r, fmt.Errorf("%w (%s)", errForm, oneLine(err.Error())))
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Request = r
	return resp, nil
}

func (w *bodyReader) read(resp *http.Response, of intent) ([]byte, error) {
	if of.tail > 0 {
		t := proc.NewTail(of.tail)
		_, err := io.Copy(t, resp.Body)
		return t.Bytes(), err
	}
	limit := w.max
	if of.page > 1 {
		limit /= 4 // decoded values take several times as much memory
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, limit)
	}
	return body, nil
}

// fail returns the failure of a request, or the cause for which its context ended.
func (w *bodyReader) fail(ctx context.Context, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%v)", errTimeout, w.timeout)
	}
	return noAnswerFailure(r, err)
}

func isJSON(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
