// Package tracker is where issues live: the seam between ralph and a backlog.
//
// A [Tracker] lists issues, reads one again, and writes ralph's report and state on it. It knows no git, no agent and
// no claim: labels and states show people what is going on, they are never a lock. What only some trackers can do is
// an optional interface, found by type assertion through [As].
//
// Trackers are safe for concurrent use.
package tracker

import (
	"context"
	"errors"
	"time"
)

// ErrNotFound is returned for a key that names no issue.
var ErrNotFound = errors.New("no such issue")

// UnavailableError says that the tracker cannot be reached now; nothing is known about the issue. Until is when to
// try again; zero when unknown.
type UnavailableError struct {
	Until time.Time
	Err   error
}

func (e *UnavailableError) Error() string { return "tracker unavailable: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Issue is one piece of work.
type Issue struct {
	// Key is the stable, path-safe, collision-free name: it matches [A-Za-z0-9._-]+, is valid as the last part of a
	// git ref and as a file name. Make one with [Key].
	Key string
	// ID is the tracker's own name for it, shown to people, such as "#42".
	ID     string
	Title  string
	Body   string
	URL    string // where a person reads it; for the local tracker, the file's path
	Author string
	Labels []string // as the tracker spells them
	Open   bool
	// Priority orders issues, most urgent first by the smaller number; 0 means none and comes last.
	Priority  int
	BlockedBy []Blocker
	Created   time.Time // zero when unknown
	Updated   time.Time
	// Comments are in order of time, without ralph's own.
	Comments []Comment
	// Taken says why somebody else has the issue already, such as an open pull request of a person that closes it; empty
	// when nobody has.
	Taken string
}

// Blocker is an issue that has to be closed first.
type Blocker struct {
	Key  string
	Open bool // also true when its state cannot be known
}

// Comment is something a person said on the issue.
type Comment struct {
	Author  string
	Body    string
	Created time.Time
	// Trusted says that the author may direct ralph. Text of others never reaches the prompt.
	Trusted bool
}

// HasLabel reports whether the issue carries the label, whatever its case.
func (i Issue) HasLabel(name string) bool { return containsFold(i.Labels, name) }

// Problem is an issue that could not be read; the others still are.
type Problem struct {
	Where string // file and line, or address
	Err   error
}

func (p Problem) Error() string { return p.Where + ": " + p.Err.Error() }

// Unwrap gives the cause.
func (p Problem) Unwrap() error { return p.Err }

// Listing is what a backlog holds.
type Listing struct {
	Issues   []Issue
	Problems []Problem
}

// Query narrows a listing. It is an optimisation: a tracker may return more, never less.
type Query struct {
	Labels []string // all of them, whatever their case; empty lists every open issue
}

// Change edits an issue's visible state. The zero Change does nothing. Labels compare without case.
type Change struct {
	AddLabels    []string
	RemoveLabels []string
	Close        bool
}

// Report is what ralph says on the issue about one run. Writing it again with the same Run replaces the earlier text.
type Report struct {
	Run  string // unique id of the run
	Body string // Markdown, already neutralised
	// Proof is that of another installation of ralph, whose run this was and which may have reported it already; see
	// Prover. Empty: the run is this one's.
	Proof string
}

// Tracker is a backlog. All methods honour ctx and return *UnavailableError for what may pass.
type Tracker interface {
	// Name is the registered name, such as "local".
	Name() string
	// List returns all issues that match, every page of them, in a stable order.
	List(ctx context.Context, q Query) (Listing, error)
	// Get reads one issue as it is now, or ErrNotFound.
	Get(ctx context.Context, key string) (Issue, error)
	// Report writes or replaces the run's report on the issue. It is idempotent.
	Report(ctx context.Context, key string, r Report) error
	// Change edits labels and state. It is idempotent, and touches nothing that already is so.
	Change(ctx context.Context, key string, c Change) error
}

// Approver is implemented by trackers that know who approved an issue. Others trust everyone who can write to them.
type Approver interface {
	// Approved says who put the label on, and why the issue may not be worked; nil reason means it may.
	Approved(ctx context.Context, issue Issue, label string) (by string, reason error)
}

// Prover is implemented by trackers whose reports carry a proof that only this installation of ralph can make.
type Prover interface {
	// Proof is the proof for the run's report on the issue, for an installation with other secrets that takes it over.
	// It is no secret: it stands in the report.
	Proof(key, run string) string
}

// Namer is implemented by trackers in which people know issues by names that need not be safe as keys.
type Namer interface {
	// KeyOf is the key of the issue that a person named; ok is false where no issue, or more than one, is meant.
	KeyOf(ctx context.Context, name string) (key string, ok bool)
	// Names are the names, by which KeyOf finds them, of all issues that have another one than their key, by key.
	Names(ctx context.Context) map[string]string
}

// Unwrapper is implemented by decorators.
type Unwrapper interface{ Unwrap() Tracker }

// As finds an optional interface on a tracker or on what it decorates.
func As[T any](t Tracker) (T, bool) {
	for t != nil {
		if v, ok := t.(T); ok {
			return v, true
		}
		u, ok := t.(Unwrapper)
		if !ok {
			break
		}
		t = u.Unwrap()
	}
	var zero T
	return zero, false
}
