// Package tracker is where issues live: the seam between ralph and a backlog.
//
// A [Tracker] lists issues, reads one of them, and writes ralph's report and state on it. It knows no git, no agent and
// no claim: labels and states show people the progress, they are never a lock. Capabilities that only some trackers
// have are optional interfaces, found through [As]. A [Registry] finds kinds of trackers by their [Descriptor].
//
// Package pool calls trackers; they are safe for concurrent use.
package tracker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotFound is returned for a key that names no issue.
var ErrNotFound = errors.New("no such issue")

// UnavailableError says that the tracker cannot be reached now; nothing is known about the issue. Until is when to try
// again; zero when unknown.
type UnavailableError struct {
	Until time.Time
	Err   error
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return "tracker unavailable"
	}
	return "tracker unavailable: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Issue is one piece of work.
type Issue struct {
	// Key is the stable, collision-free name, safe in paths and git refs: [Key] says which are, and makes them.
	Key string
	// ID is the tracker's own name for it, as people see it, such as "#42"; never empty.
	ID     string
	Title  string // at most [MaxTitle]
	Body   string // with the trusted comments at most [MaxText]
	URL    string // where a person reads it, for the local tracker the file's path; never empty
	Author string
	// Raw says that people read Body as it stands. Others read a page, which shows no HTML comments: the prompt has none then.
	Raw    bool
	Labels []string // as the tracker spells them
	Open   bool
	// Priority orders issues, most urgent first by the smaller number; 0 means none and comes last.
	Priority  int
	BlockedBy []Blocker
	Created   time.Time // zero when unknown
	Updated   time.Time
	// Comments are in order of time, without ralph's own.
	Comments []Comment
	// Taken says why somebody else is working on the issue, such as a person's open pull request that closes it; empty
	// when nobody is.
	Taken string
	// Confidential says that not everybody may read it who may see the project's code, and so what is made of it.
	Confidential bool
	// Touches are patterns of the paths that the issue is said to change, from the top of the repository; nil: nothing says so.
	Touches []string
	// Reported is the run whose report the issue shows, empty without one; nil: the tracker does not tell.
	Reported *string
}

// Blocker is an issue that has to be closed first.
type Blocker struct {
	Key  string
	Open bool // also true when its state cannot be known
}

// Comment is a person's comment on the issue.
type Comment struct {
	Author  string
	Body    string // may be left out unless Trusted
	Created time.Time
	// Trusted says that the author may direct ralph. Comments of others never reach the prompt.
	Trusted bool
}

// HasLabel reports whether the issue has the label, whatever its case.
func (i Issue) HasLabel(name string) bool { return containsFold(i.Labels, name) }

// Problem is an issue that could not be read. The others are listed.
type Problem struct {
	Where string // file and line, or address
	Err   error  // never nil
	Kept  bool   // the issue is in the listing all the same
}

func (p Problem) Error() string {
	return fmt.Sprintf("%s: %v", p.Where, cmp.Or(p.Err, errUnsaid))
}

// errUnsaid is the cause of a problem that has none.
var errUnsaid = errors.New("the tracker does not say what is wrong")

// Unwrap gives the cause.
func (p Problem) Unwrap() error { return p.Err }

// Listing is the result of List.
type Listing struct {
	Issues   []Issue
	Problems []Problem
}

// Query narrows a listing. It is an optimisation: a tracker may return more issues, never fewer.
type Query struct {
	Labels []string // the issue has all of them, whatever their case; empty lists every open issue
	// Unworked are labels whose issues are not worked: what blocks those need not be found out.
	Unworked []string
}

// NeedsBlockers reports whether it is of use to know what blocks an issue with these labels.
func (q Query) NeedsBlockers(labels []string) bool {
	return !slices.ContainsFunc(q.Unworked, func(l string) bool { return containsFold(labels, l) })
}

// Change edits an issue's labels and state. The zero Change does nothing. Labels are compared without case.
type Change struct {
	AddLabels    []string
	RemoveLabels []string
	Close        bool
	Reopen       bool // not together with Close
}

// Report is ralph's report on the issue. There is one: writing it replaces the earlier text, whichever run that was about.
type Report struct {
	Run  string // unique id of the run that it is about
	Body string // Markdown, neutralised
	// Mark is the mark of the issue's report, which another installation of ralph may have given it; see Marker. Empty: this
	// installation's own.
	Mark string
}

// Tracker is a backlog. All methods honour ctx. They return *UnavailableError for failures that may pass, and *RefusedError, around
// the cause, where every call would fail, such as for want of a token.
type Tracker interface {
	// Name is the registered name, such as "local".
	Name() string
	// List returns all open issues that match, from every page, in a stable order.
	List(ctx context.Context, q Query) (Listing, error)
	// Get reads one issue as it is now, or ErrNotFound.
	Get(ctx context.Context, key string) (Issue, error)
	// Report writes or replaces the report on the issue. It is idempotent.
	Report(ctx context.Context, key string, r Report) error
	// Change edits labels and state. It is idempotent, and writes only what differs.
	Change(ctx context.Context, key string, c Change) error
}

// Approver is implemented by trackers that know who approved an issue. Others trust everyone who can write to them.
type Approver interface {
	// Approved says who set the label. The reason is nil when the issue may be worked, else an [UnapprovedError], or an
	// error of reading it.
	Approved(ctx context.Context, issue Issue, label string) (by string, reason error)
}

// Marker is implemented by trackers whose reports carry a mark that only this installation of ralph can make.
type Marker interface {
	// Mark is the mark of the issue's report. An installation with other secrets needs it to find the report. It is not
	// secret: the report shows it.
	Mark(key string) string
}

// Retracter is implemented by trackers of which each clone of a repository may have a copy of its own.
type Retracter interface {
	// Retract corrects, without a claim, what a run has left on this copy: the report takes the place of the run's own, and
	// the labels change. It does nothing where a later run has reported.
	Retract(ctx context.Context, key string, r Report, c Change) error
}

// Namer is implemented by trackers in which people know issues by names that are not always safe as keys.
type Namer interface {
	// KeyOf is the key of the issue that a person named; ok is false when no issue, or more than one, matches.
	KeyOf(ctx context.Context, name string) (key string, ok bool)
	// Names are the names of all issues whose name is not their key, by key. KeyOf finds them by these names.
	Names(ctx context.Context) map[string]string
}

// Limited is implemented by trackers whose service limits the number of requests.
type Limited interface {
	// CallsLeft says how many requests each limit of the service, by its name, had left with the last answer.
	CallsLeft() map[string]int
}

// Unwrapper is implemented by decorators.
type Unwrapper interface{ Unwrap() Tracker }

// As finds an optional interface on a tracker or on the one that it decorates.
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
