package tracker

import (
	"context"
	"time"
)

// Request asks for a pull or merge request. Title and Body are final text.
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

// RequestRef is a pull or merge request that exists.
type RequestRef struct {
	Number int
	URL    string
	Draft  bool
}

// Requester is implemented by trackers that host the code too.
type Requester interface {
	// OpenRequest makes the request, or updates the open one that has the same head branch: there is never a second
	// one. It is idempotent. A request that a person has closed is not opened again; a new one is made.
	OpenRequest(ctx context.Context, r Request) (RequestRef, error)
}

// FollowUpReason says why a request needs another run.
type FollowUpReason string

const (
	ChecksFailed     FollowUpReason = "checks-failed"
	Conflict         FollowUpReason = "conflict"
	ChangesRequested FollowUpReason = "changes-requested"
)

// FollowUp is one of ralph's own open requests that needs another run.
type FollowUp struct {
	Key      string // of the issue
	Request  RequestRef
	Head     string // branch
	Commit   string // head commit that the reason is about
	Reason   FollowUpReason
	Feedback string // failing log or review, by trusted people and required checks only; hostile text
	At       time.Time
}

// Follower is implemented by trackers that can tell how ralph's requests fare.
type Follower interface {
	// FollowUps lists the open requests of ralph's own identity whose head branch has the prefix and whose required
	// checks have failed, whose base has moved into conflict, or where somebody with write permission asks for changes.
	// Checks that still run are no reason.
	FollowUps(ctx context.Context, prefix string) ([]FollowUp, error)
}

// Severity is how bad a Finding is.
type Severity string

const (
	OK   Severity = "ok"
	Warn Severity = "warn"
	Fail Severity = "fail"
)

// Finding is one thing that an inspection found, good or bad.
type Finding struct {
	What     string // what was looked at
	Severity Severity
	Detail   string // what was found, in one line
	Mend     string // the command or deed that mends it; empty when nothing has to be mended
}

// Expectation is what ralph is going to do with the tracker.
type Expectation struct {
	Labels []string // that will be read or set
	Push   bool     // branches will be pushed and requests opened
}

// Inspector is implemented by trackers that can say whether they will be able to do their work.
type Inspector interface {
	// Inspect looks at reachability, identity, permissions (too little and too much), labels and the clock. It changes
	// nothing.
	Inspect(ctx context.Context, e Expectation) []Finding
	// CreateLabels makes the labels that do not exist.
	CreateLabels(ctx context.Context, names []string) error
}

// Credentials gives what git needs to talk to the project over HTTPS.
type Credentials interface {
	// GitCredentials returns user name and secret, fresh for each call. The secret must not be logged or stored.
	GitCredentials(ctx context.Context) (user, secret string, err error)
}
