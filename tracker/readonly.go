package tracker

import (
	"context"
	"errors"
)

// ErrReadOnly is returned for writes to a read-only tracker.
var ErrReadOnly = errors.New("the tracker is read-only")

// ReadOnly is embedded by read-only trackers. The outcome of their issues is then known only from claims and journals.
type ReadOnly struct{}

// Report returns ErrReadOnly.
func (ReadOnly) Report(context.Context, string, Report) error { return ErrReadOnly }

// Change returns ErrReadOnly.
func (ReadOnly) Change(context.Context, string, Change) error { return ErrReadOnly }

func (ReadOnly) readOnly() {}

// IsReadOnly reports whether a tracker, or a tracker that it decorates, embeds [ReadOnly].
func IsReadOnly(t Tracker) bool {
	_, ok := As[interface{ readOnly() }](t)
	return ok
}

// WithoutWrites returns t, or for a read-only t a decorator whose writes do nothing and report success.
func WithoutWrites(t Tracker) Tracker {
	if IsReadOnly(t) {
		return discardingTracker{t}
	}
	return t
}

type discardingTracker struct{ Tracker }

func (s discardingTracker) Unwrap() Tracker { return s.Tracker }

func (discardingTracker) Report(context.Context, string, Report) error { return nil }

func (discardingTracker) Change(context.Context, string, Change) error { return nil }
