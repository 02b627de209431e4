package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/leak"
	"github.com/ralph-pool/ralph/sandboxes/egress/internal/wire"
)

// Endpoint is a service that the sandbox reaches over plain HTTP on loopback. Ralph forwards each request to the real
// service over TLS, with the credential in one header. It drops credentials of the sandbox's own request: they are
// placeholders.
type Endpoint struct {
	// Name identifies the endpoint in [Proxy.URL] and events: lower-case letters, digits and dashes.
	Name string
	// Upstream is the URL of the real service, "https://api.example.com/base". Requests go only to paths below it;
	// redirects are not followed. "http://" needs AllowPrivate.
	Upstream string
	// Header is the header for the credential; default Authorization.
	Header string
	// Format is the value of the header, with %s for the credential; default "Bearer %s" for Authorization, and "%s" for
	// any other header.
	Format string
	// Secret returns the credential. It is called for each request, so that a credential can be renewed during a run. The
	// credential never reaches the sandbox, the log or an error.
	Secret func(ctx context.Context) (string, error)
	// Routes lists the allowed requests; empty means everything below Upstream.
	Routes []Route
	// Admit may refuse a request, for example when a budget is spent, or delay it. body is the whole body of a request to a
	// Model. The error's text is shown to the sandbox. The Exchange, which may be nil, observes an admitted request; its End
	// may depend on whether the context has ended, because the sandbox has hung up. A nil Admit admits every request.
	Admit func(ctx context.Context, method, path string, body []byte) (Exchange, error)
	// Model marks the service of a model. Its requests are JSON, and tools with which the service itself would access the
	// internet are removed from them; see package servertools.
	Model bool
	// AllowPrivate allows a service on this host or a private network.
	AllowPrivate bool
}

// ErrOtherModel is in the error with which Admit refuses a request for another model, service tier or region.
var ErrOtherModel = errors.New("not allowed")

// Exchange observes one admitted request of an endpoint.
type Exchange interface {
	// Request wraps the request's body; the service gets the returned one. It is called at most once. The body may be read
	// during calls of other methods.
	Request(body io.ReadCloser) io.ReadCloser
	// Answer returns the body that the sandbox gets for the service's answer; it is read as it arrives. Answer is called at most
	// once, and not for an answer that the sandbox does not get.
	Answer(in *http.Response) io.ReadCloser
	// Unreached is called if the service cannot be reached, with its address and the reason.
	Unreached(address, why string)
	// End is called once, after everything else.
	End()
}

// Route is a method and path that an endpoint offers.
type Route struct {
	Method string // empty: any
	// Path is one path, or a prefix if it ends with "*". It does not include Upstream's own path.
	Path string
}

// endpoint is a validated Endpoint with its transport.
type endpoint struct {
	Endpoint
	upstream  *url.URL
	host      string // of the upstream
	port      int
	transport *http.Transport
	strip     []string
}

// credentialHeaders returns the headers from which services read credentials, and those that proxies add to a request.
func credentialHeaders() []string {
	return []string{
		"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Auth-Token", "Cookie",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via",
	}
}

func newEndpoint(e Endpoint, p *policy, roots *x509.CertPool) (*endpoint, error) {
	wrong := func(format string, args ...any) (*endpoint, error) {
		return nil, fmt.Errorf("egress endpoint %q: %s", clip(e.Name), fmt.Sprintf(format, args...))
	}
	if !wire.ValidLabel(e.Name) {
		return wrong("a name is made of lower-case letters, digits and dashes")
	}
	e.Header = http.CanonicalHeaderKey(cmp.Or(e.Header, "Authorization"))
	if e.Format == "" {
		e.Format = "%s"
		if e.Header == "Authorization" {
			e.Format = "Bearer %s"
		}
	}
	if strings.Count(e.Format, "%s") != 1 || strings.Count(e.Format, "%") != 1 {
		return wrong("format %q has not exactly one %%s", clip(e.Format))
	}
	if e.Secret == nil {
		return wrong("it has no credential; an endpoint without one is a rule")
	}
	up, err := url.Parse(e.Upstream)
	if err != nil || up.Host == "" || up.User != nil || up.RawQuery != "" || up.Fragment != "" {
		return wrong("upstream is not a URL such as https://api.example.com")
	}
	if up.Scheme != "https" && (up.Scheme != "http" || !e.AllowPrivate) {
		return wrong("upstream %s is not https://; a credential is not sent in the clear", up.Redacted())
	}
	host, port, err := splitTarget(net.JoinHostPort(up.Hostname(), cmp.Or(up.Port(), map[string]string{"http": "80", "https": "443"}[up.Scheme])))
	if err != nil {
		return wrong("upstream's host: %v", err)
	}
	up.Path = strings.TrimSuffix(up.Path, "/")
	e.Routes = slices.Clone(e.Routes)
	return &endpoint{
		Endpoint: e, upstream: up, host: host, port: port,
		strip: append(credentialHeaders(), e.Header),
		transport: &http.Transport{
			// Always the endpoint's host, whatever the request says.
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return p.dialHost(ctx, host, port, e.AllowPrivate)
			},
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: up.Hostname()},
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: p.patience,
			DisableCompression:  true,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     90 * time.Second,
			// Detects a connection that a router has dropped.
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			MaxResponseHeaderBytes: 1 << 20,
		},
	}, nil
}

// serveEndpoint forwards a request to the endpoint's service.
func (p *Proxy) serveEndpoint(w http.ResponseWriter, r *http.Request, e *endpoint) {
	err := e.check(r)
	if err != nil {
		p.writeHTTPRefusal(w, e.Name, 0, err)
		return
	}
	refuse := func(err error) {
		if r.Context().Err() == nil { // the program still waits
			p.writeHTTPRefusal(w, e.Name, 0, err)
		}
	}
	var whole []byte
	r.Body = http.MaxBytesReader(nil, r.Body, p.limits.Request)
	if e.Model {
		if whole, err = p.filterTools(r, e.Name); err != nil {
			refuse(err)
			return
		}
		defer r.Body.Close()
	}
	out, secret, exchange, err := e.outgoing(r, whole)
	if exchange != nil {
		defer exchange.End()
	}
	if err != nil {
		refuse(err)
		return
	}
	if exchange != nil && out.Body != nil {
		out.Body = exchange.Request(out.Body)
	}
	in, err := e.transport.RoundTrip(out)
	if err != nil {
		if r.Context().Err() != nil {
			return // the program has hung up
		}
		p.refuseUnreached(w, e, err, secret, exchange)
		return
	}
	if err := checkSearchable(in); err != nil {
		_ = in.Body.Close()
		p.writeHTTPRefusal(w, e.Name, 0, err)
		return
	}
	if exchange != nil {
		in.Body = exchange.Answer(in)
	}
	in.Header.Del("Set-Cookie") // would be a session of the credential's owner
	in.Header.Del("Alt-Svc")
	maskHeader(in.Header, secret)
	answer(w, in, secret.Mask)
}

// refuseUnreached refuses a request that did not reach the service. It names the service, because the program only knows a loopback
// address.
func (p *Proxy) refuseUnreached(w http.ResponseWriter, e *endpoint, err error, secret *leak.Finder, x Exchange) {
	var d *denial
	switch err = p.tooLarge(err); {
	case !errors.As(err, &d):
		err = errors.New(string(secret.Replace([]byte(err.Error()), "***")))
		d = &denial{NotConnected, "the connection failed", err}
	case d.reason == TooManyBytes:
		p.writeHTTPRefusal(w, e.Name, 0, d)
		return
	}
	where := net.JoinHostPort(e.host, strconv.Itoa(e.port))
	if x != nil {
		x.Unreached(where, d.detail)
	}
	p.writeHTTPRefusal(w, e.host, e.port, &denial{d.reason, "the service at " + where + " cannot be reached: " + d.detail, d.err})
}

// check refuses a request that no route allows, or whose body cannot be checked.
func (e *endpoint) check(r *http.Request) error {
	if !e.allows(r) {
		return deny(EndpointPath, "%s is not offered here", clip(printable(r.Method+" "+r.URL.Path)))
	}
	if coding := r.Header.Get("Content-Encoding"); e.Model && coding != "" && coding != "identity" {
		return deny(Malformed, "a request with the encoding %s cannot be checked", clip(printable(coding)))
	}
	return nil
}

// outgoing returns the request to the service, a finder for its secret in the response, and the exchange, which may be nil.
func (e *endpoint) outgoing(r *http.Request, body []byte) (out *http.Request, finder *leak.Finder, exchange Exchange, err error) {
	if e.Admit != nil {
		if exchange, err = e.Admit(r.Context(), r.Method, r.URL.Path, body); err != nil {
			reason := Budget
			if errors.Is(err, ErrOtherModel) {
				reason = OtherModel
			}
			return nil, nil, nil, deny(reason, "%s", clip(err.Error()))
		}
	}
	secret, err := e.Secret(r.Context())
	secret = strings.TrimSpace(secret)
	if err != nil || secret == "" || strings.ContainsFunc(secret, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return nil, nil, exchange, deny(NoCredential, "ralph has no usable credential for %s", e.Name)
	}
	out = r.Clone(r.Context())
	out.RequestURI, out.Close, out.Trailer = "", false, nil
	if r.ContentLength == 0 {
		out.Body = nil
	}
	u := *e.upstream
	u.Path, u.RawQuery = u.Path+r.URL.Path, r.URL.RawQuery
	out.URL, out.Host = &u, ""
	dropHopByHop(out.Header)
	for _, name := range e.strip {
		out.Header.Del(name)
	}
	keepAgent(out.Header)
	// The credential cannot be found in a compressed or partial answer.
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Del("Range")
	out.Header.Del("If-Range")
	out.Header.Set(e.Header, strings.Replace(e.Format, "%s", secret, 1))
	return out, leak.Known([]string{secret}), exchange, nil
}

// overrideHeaders returns headers with which some services treat a request as one with another method or path.
func overrideHeaders() []string {
	return []string{
		"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Method", "X-Original-Method", "X-Original-Url", "X-Original-Uri",
		"X-Rewrite-Url", "X-Rewrite-Uri", "X-Forwarded-Uri", "X-Forwarded-Path", "X-Forwarded-Prefix", "X-Forwarded-Method", "X-Envoy-Original-Path",
	}
}

// allows reports whether a route allows the request. It refuses requests that services may interpret differently.
func (e *endpoint) allows(r *http.Request) bool {
	p := r.URL.Path
	if r.Method == http.MethodConnect || r.Method == http.MethodTrace || r.URL.RawPath != "" || !strings.HasPrefix(p, "/") {
		return false
	}
	if clean := path.Clean(p); clean != p && clean+"/" != p {
		return false
	}
	if r.URL.Host != "" || strings.ContainsFunc(p, ambiguous) || r.URL.Query().Has("_method") {
		return false
	}
	// Some services treat underscores as dashes.
	for name := range r.Header {
		if slices.Contains(overrideHeaders(), http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))) {
			return false
		}
	}
	return len(e.Routes) == 0 || slices.ContainsFunc(e.Routes, func(o Route) bool {
		prefix, any := strings.CutSuffix(o.Path, "*")
		return (o.Method == "" || o.Method == r.Method) && (p == o.Path || any && strings.HasPrefix(p, prefix))
	})
}

// ambiguous reports characters of a path that services interpret differently: in some, /..;/ is the parent.
func ambiguous(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\\;%?#", c) }
