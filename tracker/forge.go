package tracker

import (
	"context"
	"errors"
	"time"
)

// Request is a wanted pull or merge request. Title and Body are final text.
type Request struct {
	Key       string // of the issue it belongs to
	Head      string // branch that has the commits
	Base      string // branch they are for
	Title     string
	Body      string
	Draft     bool
	Labels    []string
	Reviewers []string
	Assignees []string
}

// RequestRef names an existing pull or merge request.
type RequestRef struct {
	Number int
	URL    string
	Draft  bool
}

// ErrOccupied is returned where somebody who may not direct ralph has a request open for the same branches: a forge takes no
// second one, so a person has to close it.
var ErrOccupied = errors.New("another's request is in the way")

// Requester is implemented by trackers that host the code, too.
type Requester interface {
	// OpenRequest makes the request, or updates the open one with the same head branch: there is never a second one. It
	// is idempotent. A request that a person has closed is not reopened; a new one is made. One of a person who may direct ralph
	// stays as it is, and anybody else's is ErrOccupied.
	OpenRequest(ctx context.Context, r Request) (RequestRef, error)
}

// Refuser is implemented by trackers on which people may close a request without merging it.
type Refuser interface {
	// Refused is the head commit and the address of the branch's latest request, if that was closed and not merged. Both are
	// empty otherwise, as while a request is open. Requests of ralph's own account count, and those into the base of people
	// who may direct ralph.
	Refused(ctx context.Context, head, base string) (commit, url string, err error)
}

// FollowUpReason says why a request needs another run.
type FollowUpReason string

const (
	ChecksFailed     FollowUpReason = "checks-failed"
	Conflict         FollowUpReason = "conflict"
	ChangesRequested FollowUpReason = "changes-requested"
	AskedFor         FollowUpReason = "asked" // by a command
)

// FollowUp is one of ralph's own open requests that needs another run.
type FollowUp struct {
	Key      string // of the issue
	Request  RequestRef
	Head     string // branch
	Commit   string // head commit that the reason is about
	Reason   FollowUpReason
	Feedback string    // failing log, or review by trusted people; untrusted text
	Threads  []string  // of reviews, that the feedback has; see Commander
	At       time.Time // of the newest of what the feedback is about, by the forge's clock
}

// FollowUpQuery says whose requests are looked at, and what of them needs no look any more.
type FollowUpQuery struct {
	Prefix string // of the head branches
	// Answered is the time up to which commits that ralph itself has pushed since answer what people said on the request of
	// an issue. Zero, and nil: it is not known; then what was said before the head commit was pushed counts as answered.
	// Several goroutines call it.
	Answered func(ctx context.Context, key string) (time.Time, error)
}

// AnsweredFor calls Answered.
func (q FollowUpQuery) AnsweredFor(ctx context.Context, key string) (time.Time, error) {
	if q.Answered == nil {
		return time.Time{}, nil
	}
	return q.Answered(ctx, key)
}

// Follower is implemented by trackers that report the state of ralph's requests.
type Follower interface {
	// FollowUps lists the open requests of ralph's own account whose head branch has the prefix and whose required
	// checks have failed, whose base conflicts, or where somebody with write permission requests changes. Checks that
	// are still running do not count. A request for changes stands until ralph has answered it, whoever else moves the
	// head, such as by bringing the branch up to date with its base.
	FollowUps(ctx context.Context, q FollowUpQuery) ([]FollowUp, error)
}

// AutoMerger is implemented by trackers that merge a request by themselves once all that the project asks for has passed. A
// person's request is left alone.
type AutoMerger interface {
	// MergeLater makes that so for ralph's open request of a branch, if its head is still the commit. Refused says why it is not
	// so, and what a person can turn on; empty: it is. A draft, and a request with an open review, are refused, and what an
	// earlier call has done is taken back. It is idempotent.
	MergeLater(ctx context.Context, head, commit string) (refused string, err error)
	// KeepOpen takes back what MergeLater has done, if there is such a request.
	KeepOpen(ctx context.Context, head string) error
}

// RequestLister is implemented by trackers that tell which of ralph's requests are open.
type RequestLister interface {
	// Requests are the open requests of ralph's own account whose head branch has the prefix, by the key of their issue.
	Requests(ctx context.Context, prefix string) (map[string]RequestRef, error)
}

// Severity is how bad a finding is.
type Severity string

const (
	OK   Severity = "ok"
	Warn Severity = "warn"
	Fail Severity = "fail"
)

// FindingLabels is the What of a finding about labels. Inspector.CreateLabels fixes it.
const FindingLabels = "labels"

// Finding is one result of an inspection, good or bad.
type Finding struct {
	What     string   `json:"what"` // what was inspected
	Severity Severity `json:"status"`
	Detail   string   `json:"detail"`        // one line
	Fix      string   `json:"fix,omitempty"` // what a person can do; may be empty
}

// Expectation is what ralph will do with the tracker.
type Expectation struct {
	Labels []string // that will be read or set
	Push   bool     // branches will be pushed and requests opened
}

// Inspector is implemented by trackers that can check whether ralph has what it needs.
type Inspector interface {
	// Inspect checks reachability, identity, permissions (too few and too many), labels and the clock. It changes
	// nothing.
	Inspect(ctx context.Context, e Expectation) []Finding
	// CreateLabels makes the labels that do not exist.
	CreateLabels(ctx context.Context, names []string) error
}

// Committer is implemented by trackers on which ralph may have an account of its own.
type Committer interface {
	// Committer is the name and address that the forge shows as that account on commits; empty when ralph uses a person's.
	Committer(ctx context.Context) (name, email string, err error)
}

// Credentials gives git a login for the project over HTTPS.
type Credentials interface {
	// GitCredentials returns user name and secret, fresh for each call. The secret must not be logged or stored.
	GitCredentials(ctx context.Context) (user, secret string, err error)
}
