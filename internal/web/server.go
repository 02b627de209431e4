// Package web serves the state of a service: a versioned HTTP API described by OpenAPI, streams of events, metrics, health
// and pages.
//
// The content is text of agents and issues, which is untrusted, and a client may be a malicious page in a browser. So the
// host and origin of each request are checked, every response forbids scripts except the pages' own, and requests,
// connections and streams are limited.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/internal/webhook"
)

// Limits of a server.
const (
	maxHeader      = 16 << 10
	maxBody        = 64 << 10
	maxConnections = 512
	headerTime     = 5 * time.Second
	requestTime    = 30 * time.Second
	endTime        = 5 * time.Second // for current requests when the server stops
)

// Config configures a server. Service is required.
type Config struct {
	Service  *service.Service
	Token    string          // token that clients must send; empty: none; see ErrNeedsToken
	Sessions Sessions        // sessions of logged-in browsers; default: in memory
	Hosts    []string        // further host names of the server, besides this machine's own
	Streams  int             // maximum number of concurrent streams; default 200
	Metrics  *Metrics        // default: none are served
	Live     *dashboard.Live // activity of runs; default: not shown
	Version  string          // version of the program
	Log      *slog.Logger    // default: none
	Hooks    http.Handler    // handler of deliveries from forges, which authenticate themselves; default: none
	Queue    http.Handler    // handler below QueuePath, with the same checks as pages; default: none
	// MetricsOnly restricts the server to health and metrics.
	MetricsOnly bool
	// WriteTime is the maximum time for writing one part of a stream; default 10 s.
	WriteTime time.Duration
}

// QueuePath is the path prefix of Config.Queue.
const QueuePath = "/queue/"

// ErrNeedsToken is returned for an address that other machines may reach, if there is no token.
var ErrNeedsToken = errors.New("other machines may reach the address, so a token is needed")

// Listen listens at HOST:PORT, or at unix:PATH for this user only. It requires a token for addresses other than loopback.
func Listen(ctx context.Context, address, token string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%q is neither HOST:PORT nor unix:PATH", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && token == "" {
		return nil, fmt.Errorf("%s: %w", address, ErrNeedsToken)
	}
	var c net.ListenConfig
	return c.Listen(ctx, "tcp", address)
}

// listenUnix creates the socket in a folder that only this user can enter, and then moves it to its place.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%s: another process listens there", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("%s exists and is not a socket", path)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".ralph-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	temp := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: temp})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(temp, 0o600), os.Rename(temp, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return unixListener{l, path}, nil
}

type unixListener struct {
	*net.UnixListener
	path string
}

// Close also removes the socket.
func (l unixListener) Close() error {
	_ = os.Remove(l.path)
	return l.UnixListener.Close()
}

// Serve handles requests until ctx ends. Then streams end at once, and other requests have endTime to finish.
func Serve(ctx context.Context, l net.Listener, c Config) error {
	server := &http.Server{
		Handler:           New(c),
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      requestTime,
		IdleTimeout:       time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withConnection,
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		ended <- errors.Join(server.Shutdown(late), server.Close())
	})
	err := server.Serve(&connections{Listener: l, most: maxConnections})
	if stop() {
		return err
	}
	return <-ended
}

// New returns the handler of the server.
func New(c Config) http.Handler {
	c.Streams, c.WriteTime = cmp.Or(c.Streams, 200), cmp.Or(c.WriteTime, 10*time.Second)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[bool]string{false: "no"}[c.Service.Alive()])
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Service.NotReady()) })
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics.handler(c.Service, !c.MetricsOnly))
	}
	if c.Queue != nil {
		mux.Handle(QueuePath, c.Queue)
	}
	browsers := newLogin(c.Token, c.Sessions)
	browsers.refused = newRefusals(c.Log)
	if !c.MetricsOnly {
		pages, err := dashboard.New(dashboard.Config{
			Service: c.Service,
			Live:    c.Live,
			Version: c.Version,
			Login:   c.Token != "",
			Form:    browsers.form(),
		})
		if err != nil {
			panic(err) // an embedded file of the program is invalid
		}
		newAPI(mux, c).register(mux, pages, browsers)
	}
	return guard{
		next:  http.MaxBytesHandler(mux, maxBody),
		hooks: c.Hooks,
		hosts: append([]string{"localhost", "127.0.0.1", "::1"}, c.Hosts...),
		login: browsers,
	}
}

// answer responds to a health check. The response contains nothing else, so that it needs no token.
func answer(w http.ResponseWriter, fault string) {
	if fault != "" {
		http.Error(w, fault, http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// guard checks every request before the other handlers.
type guard struct {
	next  http.Handler
	hooks http.Handler // nil: none
	hosts []string
	login login
}

func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case !g.isOwnHost(r):
		http.Error(w, "this server does not have that host name", http.StatusMisdirectedRequest)
	case !sameOrigin(r):
		http.Error(w, "the request comes from another site", http.StatusForbidden)
	case g.hooks != nil && strings.HasPrefix(r.URL.Path, webhook.Path):
		g.hooks.ServeHTTP(w, r) // it has its own limits and checks
	case g.login.key == nil || g.authorized(r):
		protectConnection(g.next, w, r)
	case open(r.URL.Path):
		g.next.ServeHTTP(w, r)
	default:
		g.ifLoggedIn(w, r)
	}
}

func (g guard) ifLoggedIn(w http.ResponseWriter, r *http.Request) {
	switch on, err := g.login.isLoggedIn(r); {
	case err != nil:
		http.Error(w, "logins cannot be checked now; a request with the token needs no login", http.StatusServiceUnavailable)
	case on:
		r, done := g.login.withSession(r)
		defer done()
		protectConnection(g.next, w, r)
	case wantsPage(r):
		toLogin(w, r)
	default:
		w.Header().Set("WWW-Authenticate", `Basic realm="ralph: the token is the password", charset="UTF-8"`)
		http.Error(w, "a token is needed", http.StatusUnauthorized)
	}
}

// isOwnHost reports whether the request's Host is one of the server's names or the address at which the request arrived. A
// malicious page can make a browser connect under another name (DNS rebinding).
func (g guard) isOwnHost(r *http.Request) bool {
	host := hostOf(r.Host)
	to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	named := slices.ContainsFunc(g.hosts, func(name string) bool { return strings.EqualFold(name, host) })
	return named || to != nil && hostOf(to.String()) == host && host != ""
}

// hostOf returns a Host header without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// sameOrigin reports whether the request was not triggered by another site. Links from other sites may be followed.
func sameOrigin(r *http.Request) bool {
	if origins, sent := r.Header["Origin"]; sent {
		u, err := url.Parse(origins[0])
		return err == nil && len(origins) == 1 && u.Host != "" && strings.EqualFold(u.Host, r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// authorized reports whether the request has the token. A browser may send it as the password of basic authentication.
func (g guard) authorized(r *http.Request) bool {
	sent, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		_, sent, _ = r.BasicAuth()
	}
	if g.login.isToken(sent) {
		return true
	}
	if sent != "" {
		g.login.refused.note(r)
	}
	return false
}
