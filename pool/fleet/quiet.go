package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/pool/fleet/address"
	"github.com/ralph-pool/ralph/pool/journal"
)

// outage logs once that the database is away, once that it refuses this machine, and once that it is back.
type outage struct {
	log   *slog.Logger
	ping  sync.Mutex // held during a ping: the others wait for its answer
	mu    sync.Mutex
	is    bool      // guarded by mu
	no    bool      // guarded by mu; a refusal was logged
	ended time.Time // guarded by mu; the last one; zero: there was none
}

// pingTime bounds the statement that tells whether the database is there.
const pingTime = 5 * time.Second

// away asks the database whether it takes writes, unless it is known not to: it does not answer, is a standby, or has lost its tables.
func (f *Fleet) away(ctx context.Context) bool {
	f.outage.ping.Lock()
	defer f.outage.ping.Unlock()
	if f.outage.known() {
		return true
	}
	ping, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTime)
	defer cancel()
	if _, err := f.db.exec(ping, "UPDATE ralph_machine SET name = name WHERE id = $1", f.id); err != nil {
		f.outage.note(err)
	}
	return f.outage.known()
}

// note notes whether the database answers.
func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refused := address.Refuses(err) // such as a password that has changed
	switch {
	case err != nil && (!o.is || refused && !o.no):
		o.is, o.no = true, refused
		o.log.Error("the database is away; what is being worked goes on", "error", err)
	case err == nil && o.is:
		o.is, o.no, o.ended = false, false, time.Now()
		o.log.Info("the database is back")
	}
}

// justOver reports an outage that ended a moment ago: its last errors are still to come.
func (o *outage) justOver() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ended.IsZero() && time.Since(o.ended) < quietTime
}

// ErrAway says that the database does not answer, or takes no writes.
var ErrAway = fmt.Errorf("%w; nothing new is begun until it is back", journal.ErrAway)

// Held is why this machine begins nothing of the project for now, such as ErrAway; nil: it does. It waits for nothing.
func (f *Fleet) Held(project string) error {
	if f.outage.known() {
		return ErrAway
	}
	if s := f.project(project); s != nil {
		return s.trouble(time.Now())
	}
	return nil
}

// known reports an outage that has been logged.
func (o *outage) known() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.is
}

// quiet passes on warnings and errors of River's, each text once a minute. In an outage of the database each part of River logs an
// error or more a second: those are left out, because outage logs it. While the database is there, errors of single connections
// are one line a minute.
type quiet struct {
	slog.Handler
	f    *Fleet
	said *said
}

// broken matches the texts of errors of a connection.
var broken = pattern.Lazy(`(?i)SQLSTATE (08|53|57)|connect|conn |closed|EOF|pipe|reset by peer|time(d )?out|deadline`)

type said struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text
}

// quietTime is how long the same text is not repeated.
const quietTime = time.Minute

// first reports whether the text was not logged in the last minute.
func (s *said) first(text string, at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Sub(s.last[text]) < quietTime {
		return false
	}
	if len(s.last) > 1000 {
		clear(s.last)
	}
	s.last[text] = at
	return true
}

// Quiet makes a handler for the log of a part of River: in an outage of the database it passes on nothing, for the fleet says so.
func (f *Fleet) Quiet(h slog.Handler) slog.Handler {
	return quiet{h, f, &said{last: map[string]time.Time{}}}
}

// Enabled is part of slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// Handle is part of slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	text, failure := r.Message, ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" || a.Key == "error" {
			failure = a.Value.String()
		}
		return failure == ""
	})
	if failure == "" && q.f.outage.known() { // such as that River has tried something too often
		return nil
	}
	if failure != "" {
		if q.f.away(ctx) {
			return nil
		}
		if broken().MatchString(failure) {
			if q.f.outage.justOver() {
				return nil
			}
			text = "connection"
		}
	}
	if !q.said.first(text, r.Time) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs is part of slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.f, q.said}
}

// WithGroup is part of slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.f, q.said}
}
