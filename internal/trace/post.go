package trace

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// answerMax is the maximum number of bytes read of a response.
const answerMax = 64 << 10

// errFinal marks a permanent failure.
var errFinal = errors.New("not tried again")

// post sends encoded spans once. Its errors contain no header and no text from the collector.
func (s settings) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: the collector's address cannot be used", errFinal)
	}
	r.Header = s.header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "ralph")
	res, err := s.client.Do(r)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		_, known := errors.AsType[net.Error](wrapped.Err)
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](wrapped.Err)
		if !known && !untrusted && ctx.Err() == nil { // net/http quotes a response that is not HTTP
			wrapped.Err = errors.New("no answer in HTTP")
		}
		return fmt.Errorf("collector at %s: %w", r.URL.Host, wrapped.Err)
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, answerMax) // allows the connection to be reused
	switch code := res.StatusCode; code {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent: // the collector may have rejected some spans, but sending twice is worse than losing them
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("collector at %s answers %d", r.URL.Host, code)
	default:
		return fmt.Errorf("%w: collector at %s answers %d", errFinal, r.URL.Host, code)
	}
}
