package egress

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// plainTransport returns the transport for http:// requests. Each connection is checked when it is made, and serves one
// host and port.
func (p *Proxy) plainTransport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := splitTarget(address)
			if err != nil {
				return nil, deny(Malformed, "the host is invalid")
			}
			return p.policy.connect(ctx, host, port)
		},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// servePlain forwards an http:// request. only is the host of the connection; if empty, the request names the host.
func (p *Proxy) servePlain(w http.ResponseWriter, r *http.Request, only string) {
	target, host, port, err := plainTarget(r, only)
	if err == nil {
		_, err = p.policy.permit(host, port)
	}
	if err != nil {
		p.writeHTTPRefusal(w, host, port, err)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI, out.Close, out.Trailer = "", false, nil
	out.URL, out.Host = target, r.Host
	if r.ContentLength == 0 {
		out.Body = nil
	}
	dropHopByHop(out.Header)
	keepAgent(out.Header)
	in, err := p.plain.RoundTrip(out)
	if err != nil {
		if r.Context().Err() != nil {
			return // the program has hung up
		}
		p.writeHTTPRefusal(w, host, port, err)
		return
	}
	answer(w, in, nil)
}

// plainTarget returns the target of a request: its URL if it was sent to a proxy, and otherwise the connection's host,
// which the request must name.
func plainTarget(r *http.Request, only string) (target *url.URL, host string, port int, err error) {
	authority := r.Host
	if only == "" {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			return nil, "", 0, deny(Malformed, "a request to the proxy must be CONNECT or for an http:// URL")
		}
		authority = r.URL.Host
	}
	if !strings.Contains(strings.TrimPrefix(authority, "["), ":") || strings.HasSuffix(authority, "]") {
		authority = net.JoinHostPort(strings.Trim(authority, "[]"), strconv.Itoa(wire.HTTPPort))
	}
	host, port, err = splitTarget(authority)
	if err != nil {
		return nil, "", 0, deny(Malformed, "the host is invalid")
	}
	if only != "" && (host != only || port != wire.HTTPPort) {
		return nil, only, wire.HTTPPort, deny(WrongHost, "a request for %s", clip(host))
	}
	copied := *r.URL
	copied.Scheme, copied.Host, copied.User = "http", net.JoinHostPort(host, strconv.Itoa(port)), nil
	return &copied, host, port, nil
}

// dropHopByHop removes the headers that apply to one connection only.
func dropHopByHop(h http.Header) {
	for _, named := range h["Connection"] {
		for name := range strings.SplitSeq(named, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range []string{
		"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Expect",
	} {
		h.Del(name)
	}
}

// keepAgent prevents the library from adding its own User-Agent.
func keepAgent(h http.Header) {
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil
	}
}

// answer forwards a response piece by piece as it arrives. through, if set, filters the body.
func answer(w http.ResponseWriter, in *http.Response, through func(io.Writer) io.WriteCloser) {
	defer in.Body.Close()
	dropHopByHop(in.Header)
	head := w.Header()
	maps.Copy(head, in.Header)
	if _, ok := head["Date"]; !ok {
		head["Date"] = nil // only the server's own
	}
	w.WriteHeader(in.StatusCode)
	out := &flushWriter{w: w, control: http.NewResponseController(w)}
	_ = out.control.Flush() // the headers are useful before the body arrives
	var to io.WriteCloser = out
	if through != nil {
		to = through(out)
	}
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{in.Body}, make([]byte, 32<<10))
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		// The program must notice that the response is incomplete. Handlers signal that with this panic.
		panic(http.ErrAbortHandler)
	}
}

// flushWriter is a writer that flushes after each Write.
type flushWriter struct {
	w       io.Writer
	control *http.ResponseController
}

func (f *flushWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	return n, errors.Join(err, f.control.Flush())
}

// Close does nothing.
func (*flushWriter) Close() error { return nil }
