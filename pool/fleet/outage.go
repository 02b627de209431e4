package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/pool/fleet/internal/address"
	"github.com/ralph-pool/ralph/pool/journal"
)

// outage logs once each that the database is away, that it refuses this machine, and that it is back.
type outage struct {
	log           *slog.Logger
	ping          sync.Mutex // held during a ping, so that others wait for its result
	mu            sync.Mutex
	isAway        bool      // guarded by mu; the database is away
	refusalLogged bool      // guarded by mu; a refusal was logged
	ended         time.Time // guarded by mu; end of the last outage; zero: none
}

// pingTime limits the statement that tests the database.
const pingTime = 5 * time.Second

// away reports whether the database accepts no writes: it does not answer, is a standby, or has lost its tables. It asks
// the database unless an outage is known.
func (f *Fleet) away(ctx context.Context) bool {
	f.outage.ping.Lock()
	defer f.outage.ping.Unlock()
	if f.outage.isKnown() {
		return true
	}
	ping, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTime)
	defer cancel()
	if _, err := f.db.exec(ping, "UPDATE ralph_machine SET name = name WHERE id = $1", f.id); err != nil {
		f.outage.note(err)
	}
	return f.outage.isKnown()
}

// note records whether the database answers.
func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refused := address.Refuses(err) // for example because the password has changed
	switch {
	case err != nil && (!o.isAway || refused && !o.refusalLogged):
		o.isAway, o.refusalLogged = true, refused
		o.log.Error("the database is unavailable; active runs continue", "error", err)
	case err == nil && o.isAway:
		o.isAway, o.refusalLogged, o.ended = false, false, time.Now()
		o.log.Info("the database is available again")
	}
}

// justOver reports whether an outage has just ended, so that its last errors may still arrive.
func (o *outage) justOver() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.ended.IsZero() && time.Since(o.ended) < quietTime
}

// ErrUnavailable means that the database does not answer or accepts no writes.
var ErrUnavailable = fmt.Errorf("%w; no new runs start until it is back", journal.ErrUnavailable)

// PauseReason returns why this machine starts no runs of the project now, for example ErrUnavailable, or nil. It does not block.
func (f *Fleet) PauseReason(project string) error {
	if f.outage.isKnown() {
		return ErrUnavailable
	}
	if s := f.project(project); s != nil {
		return s.trouble(time.Now())
	}
	return nil
}

// isKnown reports whether there is an outage that was logged.
func (o *outage) isKnown() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isAway
}

// quiet passes on River's warnings and errors, each text once a minute. During an outage each part of River logs at least
// one error a second: quiet drops them, because outage logs it. Otherwise errors of single connections become one line a
// minute.
type quiet struct {
	slog.Handler
	f       *Fleet
	repeats *repeatFilter
}

// connectionFailure matches the texts of connection errors.
var connectionFailure = pattern.Lazy(`(?i)SQLSTATE (08|53|57)|connect|conn |closed|EOF|pipe|reset by peer|time(d )?out|deadline`)

type repeatFilter struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text
}

// quietTime is the time during which the same text is not repeated.
const quietTime = time.Minute

// isFirst reports whether the text was not logged during quietTime.
func (s *repeatFilter) isFirst(text string, at time.Time) bool {
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

// Quiet wraps the log handler of a part of River. During an outage, which the fleet logs, it drops all entries.
func (f *Fleet) Quiet(h slog.Handler) slog.Handler {
	return quiet{h, f, &repeatFilter{last: map[string]time.Time{}}}
}

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	text, failure := r.Message, ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" || a.Key == "error" {
			failure = a.Value.String()
		}
		return failure == ""
	})
	if failure == "" && q.f.outage.isKnown() { // for example River's message that it has tried something too often
		return nil
	}
	if failure != "" {
		if q.f.away(ctx) {
			return nil
		}
		if connectionFailure().MatchString(failure) {
			if q.f.outage.justOver() {
				return nil
			}
			text = "connection"
		}
	}
	if !q.repeats.isFirst(text, r.Time) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.f, q.repeats}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.f, q.repeats}
}
