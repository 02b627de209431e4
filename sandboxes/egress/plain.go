package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// plainTransport sends http:// requests; each connection is checked when it is made and serves one host and port.
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

// servePlain sends an http:// request on. Only is the host of the connection; with "" the request names it.
func (p *Proxy) servePlain(w http.ResponseWriter, r *http.Request, only string) {
	target, host, port, err := plainTarget(r, only)
	if err == nil {
		_, err = p.policy.permit(host, port)
	}
	if err != nil {
		p.httpRefuse(w, host, port, err)
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
			return // the program has gone
		}
		p.httpRefuse(w, host, port, err)
		return
	}
	answer(w, in, nil)
}

// plainTarget is the target of a request: the URL in it if it was sent to a proxy, else the connection's host, which it
// must name.
func plainTarget(r *http.Request, only string) (target *url.URL, host string, port int, err error) {
	authority := r.Host
	if only == "" {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			return nil, "", 0, deny(Malformed, "to a proxy a request is CONNECT or for an http:// URL")
		}
		authority = r.URL.Host
	}
	if !strings.Contains(strings.TrimPrefix(authority, "["), ":") || strings.HasSuffix(authority, "]") {
		authority = net.JoinHostPort(strings.Trim(authority, "[]"), strconv.Itoa(httpPort))
	}
	host, port, err = splitTarget(authority)
	if err != nil {
		return nil, "", 0, deny(Malformed, "the host is invalid")
	}
	if only != "" && (host != only || port != httpPort) {
		return nil, only, httpPort, deny(OtherName, "a request for %s", clip(host))
	}
	copied := *r.URL
	copied.Scheme, copied.Host, copied.User = "http", net.JoinHostPort(host, strconv.Itoa(port)), nil
	return &copied, host, port, nil
}

// dropHopByHop drops the headers of one connection, which are not the request's.
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

// keepAgent stops the library from adding a User-Agent of its own.
func keepAgent(h http.Header) {
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil
	}
}

// answer passes a response on, piece by piece as it comes. Through, when not nil, filters the body.
func answer(w http.ResponseWriter, in *http.Response, through func(io.Writer) io.WriteCloser) {
	defer in.Body.Close()
	dropHopByHop(in.Header)
	head := w.Header()
	for name, values := range in.Header {
		head[name] = values
	}
	if _, ok := head["Date"]; !ok {
		head["Date"] = nil // the server's, or none
	}
	w.WriteHeader(in.StatusCode)
	out := &flushing{w: w, control: http.NewResponseController(w)}
	_ = out.control.Flush() // the headers mean something by themselves
	var to io.WriteCloser = out
	if through != nil {
		to = through(out)
	}
	_, err := io.CopyBuffer(onlyWriter{to}, onlyReader{in.Body}, make([]byte, 32<<10))
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		// The program must see that the response is incomplete. This is how a handler does it.
		panic(http.ErrAbortHandler)
	}
}

// flushing sends every piece at once.
type flushing struct {
	w       io.Writer
	control *http.ResponseController
}

func (f *flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	return n, errors.Join(err, f.control.Flush())
}

// Close has nothing to do.
func (*flushing) Close() error { return nil }
