package fleet

import (
	"context"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// outage says once that the database is away, and once that it is back.
type outage struct {
	mu  sync.Mutex // held while the database is asked, too
	is  bool       // guarded by mu
	log *slog.Logger
}

// pingTime bounds the question whether the database is there.
const pingTime = 5 * time.Second

// away reports whether the database does not answer.
func (f *Fleet) away(ctx context.Context) bool {
	f.outage.mu.Lock()
	defer f.outage.mu.Unlock()
	if f.outage.is {
		return true
	}
	ping, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTime)
	defer cancel()
	if err := f.db.pool.Ping(ping); err != nil {
		f.outage.begin(f.db.hide(err))
	}
	return f.outage.is
}

// begin notes that the database has gone. o.mu is held.
func (o *outage) begin(err error) {
	if !o.is {
		o.is = true
		o.log.Error("the database is away; what is being worked goes on", "error", err)
	}
}

// note notes whether the database answers.
func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.begin(err)
	} else if o.is {
		o.is = false
		o.log.Info("the database is back")
	}
}

// quiet passes on of River's log what matters to people: warnings, and each text once a minute. In an outage of the database River
// writes an error or more a second, of each of its parts: of those people get none. See outage.
type quiet struct {
	slog.Handler
	said *said
	away func(context.Context) bool
}

// cut is like the texts of errors that come from a connection, also of one that ended in an outage that is over.
var cut = regexp.MustCompile(`(?i)SQLSTATE (08|53|57)|connect|conn |closed|EOF|pipe|reset by peer|time(d )?out|deadline`)

// outage reports whether the record is about a database that is or was away.
func (q quiet) outage(ctx context.Context, r slog.Record) bool {
	if r.Level < slog.LevelError {
		return false
	}
	text := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "err" || a.Key == "error" {
			text = a.Value.String()
		}
		return text == ""
	})
	return text != "" && (q.away(ctx) || cut.MatchString(text))
}

type said struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text
}

// quietTime is how long the same text is not repeated.
const quietTime = time.Minute

func newQuiet(h slog.Handler, away func(context.Context) bool) slog.Handler {
	return quiet{h, &said{last: map[string]time.Time{}}, away}
}

// Enabled is part of slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// Handle is part of slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if q.outage(ctx, r) {
		return nil
	}
	q.said.mu.Lock()
	known := r.Time.Sub(q.said.last[r.Message]) < quietTime
	if !known {
		if len(q.said.last) > 1000 {
			clear(q.said.last)
		}
		q.said.last[r.Message] = r.Time
	}
	q.said.mu.Unlock()
	if known {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs is part of slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.said, q.away}
}

// WithGroup is part of slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	return quiet{q.Handler.WithGroup(name), q.said, q.away}
}
