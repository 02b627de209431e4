package tracker

import (
	"context"
	"errors"
)

// ErrReadOnly is returned for writes to a tracker that cannot be written to.
var ErrReadOnly = errors.New("the tracker is read-only")

// ReadOnly is embedded by trackers that cannot be written to. What became of their issues is then known from claims
// and journals alone.
type ReadOnly struct{}

// Report returns ErrReadOnly.
func (ReadOnly) Report(context.Context, string, Report) error { return ErrReadOnly }

// Change returns ErrReadOnly.
func (ReadOnly) Change(context.Context, string, Change) error { return ErrReadOnly }

func (ReadOnly) readOnly() {}

// IsReadOnly reports whether a tracker, or the one that it decorates, embeds [ReadOnly].
func IsReadOnly(t Tracker) bool {
	_, ok := As[interface{ readOnly() }](t)
	return ok
}

// WithoutWrites returns a tracker, or for one that is read-only another that reports success and writes nothing.
func WithoutWrites(t Tracker) Tracker {
	if IsReadOnly(t) {
		return silent{t}
	}
	return t
}

type silent struct{ Tracker }

func (s silent) Unwrap() Tracker { return s.Tracker }

func (silent) Report(context.Context, string, Report) error { return nil }

func (silent) Change(context.Context, string, Change) error { return nil }
