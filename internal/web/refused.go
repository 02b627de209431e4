package web

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of log lines about wrong tokens.
const (
	refusalPause = time.Minute // between two lines about one address
	maxRefusals  = 1000        // addresses that are remembered
)

// refusals logs requests with a wrong token. It is safe for concurrent use.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; the latest line about each address
}

// newRefusals logs to log; nil discards the lines.
func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: cmp.Or(log, slog.New(slog.DiscardHandler)), last: map[string]time.Time{}}
}

// note logs a request, unless its address was logged a moment ago.
func (f *refusals) note(r *http.Request) {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = "unix socket"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.last[address]) < refusalPause {
		return
	}
	if len(f.last) >= maxRefusals {
		clear(f.last)
	}
	f.last[address] = time.Now()
	f.log.Warn("request with a wrong token refused", "address", address, "path", r.URL.Path)
}
