// Package tracker defines the interface between ralph and the places where issues are stored, such as GitHub, GitLab and a
// folder of files.
//
// A [Tracker] lists issues, reads one of them, and writes ralph's report and labels to it. It knows nothing about git, agents
// or claims: labels and states show progress to people, they are never a lock. Capabilities that only some trackers have are
// optional interfaces, found through [As]. A [Registry] finds kinds of trackers by their [Descriptor].
//
// Package pool calls trackers. They are safe for concurrent use.
package tracker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotFound is returned for the key of an issue that does not exist.
var ErrNotFound = errors.New("no such issue")

// UnavailableError is returned if the tracker cannot be reached now; it implies nothing about the issue. Until is the time for
// the next try, zero when unknown.
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

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Issue is one piece of work.
type Issue struct {
	// Key is a stable name without collisions, safe in paths and git refs. [Key] makes it.
	Key string
	// ID is the tracker's own name for the issue, as people see it, such as "#42"; never empty.
	ID     string
	Title  string // at most [MaxTitle]
	Body   string // at most [MaxText] together with the trusted comments
	URL    string // page of the issue, or file path for the local tracker; never empty
	Author string
	// Raw is set if people read Body as raw text. Otherwise they read a page without HTML comments, and the prompt omits them.
	Raw    bool
	Labels []string // in the tracker's spelling
	Open   bool
	// Priority orders issues, the smallest number first; 0 means none and sorts last.
	Priority  int
	BlockedBy []Blocker
	Created   time.Time // zero when unknown
	Updated   time.Time
	// Comments are in chronological order, without ralph's own.
	Comments []Comment
	// Taken describes somebody else's work on the issue, such as a person's open pull request that closes it; empty if there
	// is none.
	Taken string
	// Confidential is set if some people who can see the project's code may not read the issue, nor the work derived from it.
	Confidential bool
	// Touches lists patterns of the paths that the issue will change, relative to the root of the repository; nil: unknown.
	Touches []string
	// Reported is the ID of the run whose report the issue shows, empty without a report; nil: the tracker does not know.
	Reported *string
}

// Blocker is an issue that has to be closed before another can start.
type Blocker struct {
	Key  string
	Open bool // also true when the state is unknown
}

// Comment is a person's comment on the issue.
type Comment struct {
	Author  string
	Body    string // may be empty unless Trusted
	Created time.Time
	// Trusted is set if the author may direct ralph. Other comments never reach the prompt.
	Trusted bool
}

// HasLabel reports whether the issue has the label, ignoring case.
func (i Issue) HasLabel(name string) bool { return containsFold(i.Labels, name) }

// StateLabels names the labels that show an issue's state to people.
type StateLabels struct {
	NeedsHuman string // default "needs-human"
	NeedsInfo  string // default "needs-info"
	InReview   string // default "in-review"
	Claimed    string // on issues that are being worked; default: none
	Failed     string // on issues that wait for their next attempt; default: none
}

// Problem is an error with one issue of a listing. The other issues are listed.
type Problem struct {
	Where string // file and line, or URL
	Err   error  // never nil
	Kept  bool   // the listing contains the issue nevertheless
}

func (p Problem) Error() string {
	return fmt.Sprintf("%s: %v", p.Where, cmp.Or(p.Err, errNoCause))
}

// errNoCause replaces a missing cause.
var errNoCause = errors.New("the tracker does not say what is wrong")

// Unwrap returns the cause.
func (p Problem) Unwrap() error { return p.Err }

// Listing is the result of Tracker.List.
type Listing struct {
	Issues   []Issue
	Problems []Problem
}

// Query narrows a listing. It is an optimisation: a tracker may return more issues, but never fewer.
type Query struct {
	Labels []string // labels that an issue must all have, ignoring case; empty: every open issue
	// Unworked lists labels whose issues are not worked, so that their blockers need not be looked up.
	Unworked []string
}

// NeedsBlockers reports whether the caller needs the blockers of an issue with these labels.
func (q Query) NeedsBlockers(labels []string) bool {
	return !slices.ContainsFunc(q.Unworked, func(l string) bool { return containsFold(labels, l) })
}

// Change edits an issue's labels and state. The zero Change does nothing. Case is ignored in labels.
type Change struct {
	AddLabels    []string
	RemoveLabels []string
	Close        bool
	Reopen       bool // not together with Close
}

// Report is ralph's report on the issue. An issue has one: a new report replaces the earlier text, whichever run that was about.
type Report struct {
	Run  string // unique ID of the run
	Body string // Markdown, neutralised
	// Mark is the mark of the issue's report, see Marker. It is set if another installation of ralph may have written the report;
	// empty: the mark of this installation.
	Mark string
}

// Tracker is a backlog. All methods honour ctx. They return *UnavailableError for temporary failures, and *RefusedError around
// the cause if every call would fail, for example without a token.
type Tracker interface {
	// Name returns the registered name, such as "local".
	Name() string
	// List returns all matching open issues, from every page, in a stable order.
	List(ctx context.Context, q Query) (Listing, error)
	// Get reads the current state of one issue. It returns ErrNotFound if there is none.
	Get(ctx context.Context, key string) (Issue, error)
	// Report writes or replaces the report on the issue. It is idempotent.
	Report(ctx context.Context, key string, r Report) error
	// Change edits labels and state. It is idempotent and writes only the differences.
	Change(ctx context.Context, key string, c Change) error
}

// Approver is implemented by trackers that know who approved an issue. Other trackers trust everyone who can write to them.
type Approver interface {
	// Approved returns the account that set the label. The reason is nil if the issue may be worked, otherwise an
	// [UnapprovedError] or the error of a failed read.
	Approved(ctx context.Context, issue Issue, label string) (by string, reason error)
}

// Marker is implemented by trackers whose reports carry a mark that only this installation of ralph can create.
type Marker interface {
	// Mark returns the mark of the issue's report. An installation with other secrets needs it to find the report. It is not
	// secret: the report contains it.
	Mark(key string) string
}

// Retracter is implemented by trackers that can have a separate copy in each clone of a repository.
type Retracter interface {
	// Retract corrects, without a claim, the results of a run in this copy: it replaces the report of the run and changes the
	// labels. It does nothing if a later run has reported.
	Retract(ctx context.Context, key string, r Report, c Change) error
}

// Namer is implemented by trackers whose own issue names are not always safe as keys.
type Namer interface {
	// KeyOf returns the key of the issue with this name; ok is false if no issue, or more than one, matches.
	KeyOf(ctx context.Context, name string) (key string, ok bool)
	// Names returns, by key, the names of all issues whose name differs from the key. KeyOf accepts these names.
	Names(ctx context.Context) map[string]string
}

// Limited is implemented by trackers whose service limits the number of requests.
type Limited interface {
	// CallsLeft returns the remaining requests of each limit, by the service's name for it, as of the last response.
	CallsLeft() map[string]int
}

// Unwrapper is implemented by decorators of a Tracker.
type Unwrapper interface{ Unwrap() Tracker }

// As returns the first tracker that implements the optional interface T: t itself or one that it decorates.
func As[T any](t Tracker) (found T, ok bool) {
	for t != nil {
		if found, ok = t.(T); ok {
			return found, true
		}
		u, decorates := t.(Unwrapper)
		if !decorates {
			break
		}
		t = u.Unwrap()
	}
	return found, false
}
