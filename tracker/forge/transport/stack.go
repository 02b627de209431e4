// Package transport is the HTTP client for a forge. A [Stack] adds authentication, rate limits, conditional requests, spaced
// writes and retries, and classifies failures in one place. A tracker passes the Stack's client to its SDK, declares its
// intent in the context of a call ([WithIdempotent], [Expect]), and converts the SDK's errors with [Explain].
//
// Everything here is safe for concurrent use. No error, log or file contains a token, and only the configured host gets it.
package transport

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport/store"
)

const cacheBytes = 128 << 20

// Config configures a Stack for one forge. A zero field stands for its default.
type Config struct {
	BaseURL  string              // base URL of the API; only this scheme and host get the token
	Source   tracker.TokenSource // nil: no authentication
	CacheDir string              // created with mode 0700; empty: no conditional requests
	CAFile   string              // PEM file with additional certificate authorities

	Timeout  time.Duration // of one request including its body; default 30 s
	MaxBody  int64         // maximum bytes of an answer, a quarter of that for a page of several entries; default 32 MiB
	MaxWait  time.Duration // maximum wait for a rate limit; beyond it *tracker.UnavailableError has the end; default 15 min
	Spacing  time.Duration // between two writes; default 1 s
	Attempts int           // maximum number of tries of a repeatable request; default retry.Attempts

	Clock Clock             // nil: the real clock
	Base  http.RoundTripper // nil: a new transport with the proxies of the environment
	Log   *slog.Logger
}

// Stack is an http.RoundTripper for requests to one forge.
type Stack struct {
	top    http.RoundTripper
	base   http.RoundTripper
	store  *store.Store // nil without a cache
	limits *limits
	skew   *skew
	clock  Clock
	apiURL *url.URL // base URL of the API
}

// New validates c and builds the stack.
func New(c Config) (*Stack, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	base, err := c.prepare()
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(c.BaseURL)
	if err != nil || host.Host == "" {
		return nil, fmt.Errorf("use %q as the forge's address: want https://HOST/…", c.BaseURL)
	}
	if host.Scheme != "https" && !loopback(host.Hostname()) {
		return nil, fmt.Errorf("use %q as the forge's address: want https, or others could read the token", c.BaseURL)
	}
	sk := &skew{clock: c.Clock}

	// The layers, innermost first. They are composed only here.
	var rt http.RoundTripper = &bodyReader{next: base, timeout: c.Timeout, max: c.MaxBody, skew: sk, log: c.Log}
	rt = &authorizer{next: rt, apiURL: host, source: c.Source}
	var cache *store.Store
	if c.CacheDir != "" {
		cache, err = store.Open(c.CacheDir, cacheBytes)
		if err != nil {
			return nil, err
		}
		rt = &cachingTransport{next: rt, store: cache, source: c.Source, apiURL: host, log: c.Log}
	}
	lim := &limits{next: rt, clock: c.Clock, skew: sk, max: c.MaxWait, log: c.Log}
	rt = newWritePacer(lim, c.Clock, c.Spacing)
	rt = &retrier{next: rt, clock: c.Clock, attempts: c.Attempts, log: c.Log}
	return &Stack{top: rt, base: base, store: cache, limits: lim, skew: sk, clock: c.Clock, apiURL: host}, nil
}

// With returns c completed from a tracker's settings and the base URL of its API.
func (c Config) With(s tracker.Settings, baseURL string) Config {
	c.BaseURL, c.Source, c.CAFile, c.Spacing, c.Log = baseURL, s.Token, s.CAFile, s.WriteSpacing, s.Log
	if s.StateDir != "" {
		c.CacheDir = filepath.Join(s.StateDir, "cache")
	}
	return c
}

// prepare fills in the defaults and returns the base transport.
func (c *Config) prepare() (http.RoundTripper, error) {
	c.Timeout, c.MaxBody = cmp.Or(c.Timeout, 30*time.Second), cmp.Or(c.MaxBody, 32<<20)
	c.MaxWait, c.Spacing = cmp.Or(c.MaxWait, 15*time.Minute), cmp.Or(c.Spacing, time.Second)
	c.Attempts = cmp.Or(c.Attempts, retry.Attempts)
	if c.Clock == nil {
		c.Clock = realClock{}
	}
	if c.Base != nil {
		return c.Base, nil
	}
	pool, err := authorities(c.CAFile)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		TLSClientConfig:       &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       30 * time.Second,
		MaxIdleConnsPerHost:   4,
		ForceAttemptHTTP2:     true,
	}, nil
}

// authorities returns the system's certificate authorities plus those of a file; nil means only the system's.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the CA file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the CA file %s: it contains no PEM certificate", file)
	}
	return pool, nil
}

func loopback(host string) bool {
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
}

// RoundTrip implements http.RoundTripper.
func (s *Stack) RoundTrip(r *http.Request) (*http.Response, error) { return s.top.RoundTrip(r) }

// Client returns a client that uses the stack. It does not follow redirects within the API, except with [Follow]: they lead to
// another issue or project, which ralph must not mistake for its own. It follows redirects out of the API only for logs
// ([LastBytes]): others lead to a login page, for example, and contain no answer for ralph.
func (s *Stack) Client() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		of, from, read := intentOf(r.Context()), via[len(via)-1], via[0].Method == http.MethodGet || via[0].Method == http.MethodHead
		switch inside := s.inAPI(r.URL) && r.URL.Path != from.URL.Path; {
		case inside && (!read || !of.followRedirects):
			return http.ErrUseLastResponse
		case len(via) > 3, !inside && (!read || of.tail == 0):
			return redirectFailure(from, r.URL)
		}
		return nil
	}}
}

// inAPI reports whether a URL is within the API.
func (s *Stack) inAPI(u *url.URL) bool {
	return sameHost(s.apiURL, u) && strings.HasPrefix(u.Path, strings.TrimSuffix(s.apiURL.Path, "/")+"/")
}

// Clock returns the clock of the stack.
func (s *Stack) Clock() Clock { return s.clock }

// Now returns the forge's time if an answer has stated it, otherwise this machine's.
func (s *Stack) Now() time.Time { return s.skew.now() }

// Skew returns this machine's clock minus the forge's; false before the first answer.
func (s *Stack) Skew() (time.Duration, bool) { return s.skew.clockOffset() }

// Close closes idle connections and the cache folder. No request may be in progress.
func (s *Stack) Close() error {
	if c, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	if s.store != nil {
		return s.store.Close()
	}
	return nil
}
