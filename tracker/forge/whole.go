package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	errForm      = errors.New("the answer has another form than expected")
)

// Misshapen reports an answer that stayed JSON of another form than expected, however often it was asked for.
func Misshapen(err error) bool { return errors.Is(err, errForm) }

// whole reads the answer to its end within the timeout, so that a cut body is known before anybody believes it. It is
// the innermost layer.
type whole struct {
	next    http.RoundTripper
	timeout time.Duration
	max     int64
	skew    *skew
}

func (w *whole) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(r.Context(), w.timeout, errTimeout)
	defer cancel()
	resp, err := w.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, w.fail(ctx, r, err)
	}
	defer func() { _ = resp.Body.Close() }() // read to the end, or given up
	w.skew.note(resp.Header)
	body, err := w.read(resp, intentOf(ctx).tail)
	if err != nil {
		return nil, w.fail(ctx, r, err)
	}
	// What should be JSON and is none was cut or made by something in between. Refusals need not be JSON.
	if resp.StatusCode < 300 && len(body) > 0 && isJSON(resp.Header) && intentOf(ctx).tail == 0 && !json.Valid(body) {
		return nil, w.fail(ctx, r, errMalformed)
	}
	if into := intentOf(ctx).into; into != nil && resp.StatusCode < 300 {
		if err := into(body); err != nil {
			return nil, w.fail(ctx, r, misformed(body, err))
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Request = r
	return resp, nil
}

// misformed says what is wrong with an answer that cannot be decoded.
func misformed(body []byte, err error) error {
	if !json.Valid(body) {
		return errMalformed
	}
	return fmt.Errorf("%w (%s)", errForm, oneLine(err.Error()))
}

func (w *whole) read(resp *http.Response, tail int) ([]byte, error) {
	if tail > 0 {
		t := proc.NewTail(tail)
		_, err := io.Copy(t, resp.Body)
		return t.Bytes(), err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, w.max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > w.max {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLong, w.max)
	}
	return body, nil
}

// fail prefers the reason why ctx ended.
func (w *whole) fail(ctx context.Context, r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%v)", errTimeout, w.timeout)
	}
	return broken(r, err)
}

func isJSON(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}
