package fleet

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet passes on of River's log what matters to people: warnings, and each text once a minute. In an outage River writes an
// error or more a second.
type quiet struct {
	slog.Handler
	said *said
}

type said struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by text
}

// quietTime is how long the same text is not repeated.
const quietTime = time.Minute

func newQuiet(h slog.Handler) slog.Handler { return quiet{h, &said{last: map[string]time.Time{}}} }

// Enabled is part of slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && q.Handler.Enabled(ctx, l)
}

// Handle is part of slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
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
	return quiet{q.Handler.WithAttrs(attrs), q.said}
}

// WithGroup is part of slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.said} }
