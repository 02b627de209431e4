// Package transport is HTTP with a forge: a [Stack] does authentication, rate limits, conditional requests, spaced writes and
// retries, and has one table of failures. A tracker gives its SDK the Stack's client, says by the context of a call what it
// intends ([Repeatable], [Expect]), and turns the SDK's errors into those of package tracker with [Explain].
//
// Everything here is safe for concurrent use. A token is in no error, log or file, and goes to the configured host only.
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

// Config says how to talk to one forge. The zero value of a field means its default.
type Config struct {
	BaseURL  string              // of the API; a token goes to this scheme and host only
	Source   tracker.TokenSource // nil: no authentication
	CacheDir string              // made with mode 0700; empty: no conditional requests
	CAFile   string              // further certificate authorities, PEM

	Timeout  time.Duration // of one request, its body included; 30 s
	MaxBody  int64         // longest answer in bytes, a quarter for a page of several entries; 32 MiB
	MaxWait  time.Duration // longest wait for a rate limit; beyond it *tracker.UnavailableError says until when; 15 min
	Spacing  time.Duration // between two writes; 1 s
	Attempts int           // how often a repeatable request is made at most; retry.Attempts

	Clock Clock             // nil: the real one
	Base  http.RoundTripper // nil: a transport of its own, with the proxies of the environment
	Log   *slog.Logger
}

// Stack carries requests to one forge.
type Stack struct {
	top    http.RoundTripper
	base   http.RoundTripper
	store  *store.Store // nil without a cache
	limits *limits
	skew   *skew
	clock  Clock
	home   *url.URL // of the API
}

// New checks c and composes the stack. Problems are joined into one error.
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

	// The one place where the layers are composed, innermost first.
	var rt http.RoundTripper = &whole{next: base, timeout: c.Timeout, max: c.MaxBody, skew: sk, log: c.Log}
	rt = &authorize{next: rt, home: host, source: c.Source}
	var cache *store.Store
	if c.CacheDir != "" {
		cache, err = store.Open(c.CacheDir, cacheBytes)
		if err != nil {
			return nil, err
		}
		rt = &conditional{next: rt, store: cache, source: c.Source, home: host, log: c.Log}
	}
	lim := &limits{next: rt, clock: c.Clock, skew: sk, max: c.MaxWait, log: c.Log}
	rt = newPaced(lim, c.Clock, c.Spacing)
	rt = &repeat{next: rt, clock: c.Clock, attempts: c.Attempts, log: c.Log}
	return &Stack{top: rt, base: base, store: cache, limits: lim, skew: sk, clock: c.Clock, home: host}, nil
}

// With completes c for a tracker with these settings and this address of its API.
func (c Config) With(s tracker.Settings, baseURL string) Config {
	c.BaseURL, c.Source, c.CAFile, c.Spacing, c.Log = baseURL, s.Token, s.CAFile, s.WriteSpacing, s.Log
	if s.StateDir != "" {
		c.CacheDir = filepath.Join(s.StateDir, "cache")
	}
	return c
}

// prepare fills in the defaults and makes the base transport.
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

// authorities are the system's certificate authorities and those of a file; nil means the system's alone.
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
		return nil, fmt.Errorf("read the CA file %s: it holds no PEM certificate", file)
	}
	return pool, nil
}

func loopback(host string) bool {
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
}

// RoundTrip makes Stack an http.RoundTripper.
func (s *Stack) RoundTrip(r *http.Request) (*http.Response, error) { return s.top.RoundTrip(r) }

// Client returns a client that uses the stack. Redirects from the API to the API are not followed, unless the caller says so with
// [Follow]: they lead to another issue or project, of which ralph must take nothing for its own. Out of the API only logs are
// followed ([LastBytes]): whatever else leads there, such as to a login page, has no answer for ralph.
func (s *Stack) Client() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		of, from, read := intentOf(r.Context()), via[len(via)-1], via[0].Method == http.MethodGet || via[0].Method == http.MethodHead
		switch inside := s.inside(r.URL) && r.URL.Path != from.URL.Path; {
		case inside && (!read || !of.follow):
			return http.ErrUseLastResponse
		case len(via) > 3, !inside && (!read || of.tail == 0):
			return diverted(from, r.URL)
		}
		return nil
	}}
}

// inside reports whether an address is the API's.
func (s *Stack) inside(u *url.URL) bool {
	return sameHost(s.home, u) && strings.HasPrefix(u.Path, strings.TrimSuffix(s.home.Path, "/")+"/")
}

// Clock is the clock of the stack.
func (s *Stack) Clock() Clock { return s.clock }

// Now is the forge's time as far as its answers tell it, else this machine's.
func (s *Stack) Now() time.Time { return s.skew.now() }

// Skew is how far this machine's clock is ahead of the forge's; false before the first answer.
func (s *Stack) Skew() (time.Duration, bool) { return s.skew.ahead() }

// Close ends idle connections and closes the folder. No request may be under way.
func (s *Stack) Close() error {
	if c, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	if s.store != nil {
		return s.store.Close()
	}
	return nil
}
