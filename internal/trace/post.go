package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"google.golang.org/protobuf/encoding/protowire"
)

// answerMax bounds what is read of an answer, in bytes.
const answerMax = 64 << 10

// errFinal marks a failure that does not pass by itself.
var errFinal = errors.New("not tried again")

// post sends encoded spans once. It returns how many the collector says it did not take. Its errors show no header and no
// text of the collector.
func (s sender) post(ctx context.Context, body []byte) (rejected int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.gzip {
		body = packed(body)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%w: the collector's address cannot be used", errFinal)
	}
	r.Header = s.header.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "ralph")
	if s.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	res, err := s.client.Do(r)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		_, known := errors.AsType[net.Error](wrapped.Err)
		_, untrusted := errors.AsType[*tls.CertificateVerificationError](wrapped.Err)
		if !known && !untrusted && ctx.Err() == nil { // net/http quotes what is no HTTP
			wrapped.Err = errors.New("no answer in HTTP")
		}
		return 0, fmt.Errorf("collector at %s: %w", r.URL.Host, wrapped.Err)
	}
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	switch code := res.StatusCode; {
	case code/100 == 2 && err != nil: // it may have taken them: twice is worse than not at all
		return 0, fmt.Errorf("%w: collector at %s: %w", errFinal, r.URL.Host, err)
	case code/100 == 2:
		return rejectedOf(answer), nil
	case code == http.StatusTooManyRequests, code == http.StatusBadGateway, code == http.StatusServiceUnavailable, code == http.StatusGatewayTimeout:
		return 0, fmt.Errorf("collector at %s answers %d", r.URL.Host, code)
	default:
		return 0, fmt.Errorf("%w: collector at %s answers %d", errFinal, r.URL.Host, code)
	}
}

func packed(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // neither fails: the buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// rejectedOf reads from an ExportTraceServiceResponse how many spans were not taken; 0 also where it is not one.
func rejectedOf(answer []byte) int64 {
	partial, _ := field(answer, 1, protowire.BytesType)
	_, rejected := field(partial, 1, protowire.VarintType)
	return max(0, int64(rejected)) //nolint:gosec // a negative one counts as none
}

// field is the last field with a number and a type: its bytes, or its integer.
func field(message []byte, want protowire.Number, kind protowire.Type) (data []byte, n uint64) {
	for len(message) > 0 {
		number, is, size := protowire.ConsumeTag(message)
		if size < 0 {
			return nil, 0
		}
		message = message[size:]
		if size = protowire.ConsumeFieldValue(number, is, message); size < 0 {
			return nil, 0
		}
		if number == want && is == kind {
			data, _ = protowire.ConsumeBytes(message)
			n, _ = protowire.ConsumeVarint(message)
		}
		message = message[size:]
	}
	return data, n
}
