package tracker

import (
	"context"
	"errors"
	"time"
)

// Request is the desired state of a pull or merge request. Title and Body are final text.
type Request struct {
	Key       string // key of the issue
	Head      string // source branch
	Base      string // target branch
	Title     string
	Body      string
	Draft     bool
	Labels    []string
	Reviewers []string
	Assignees []string
}

// RequestRef identifies an existing pull or merge request.
type RequestRef struct {
	Number int
	URL    string
	Draft  bool
}

// ErrOccupied is returned if a person who may not direct ralph has an open request for the same branches. A forge allows only
// one, so a person has to close it.
var ErrOccupied = errors.New("another's request is in the way")

// Requester is implemented by trackers that also host the code.
type Requester interface {
	// OpenRequest creates the request, or updates the open one with the same head branch, so that there is never a second one.
	// It is idempotent. If a person has closed a request, OpenRequest creates a new one. It leaves an open request of a person
	// who may direct ralph unchanged, and returns ErrOccupied for anybody else's.
	OpenRequest(ctx context.Context, r Request) (RequestRef, error)
}

// RejectionReader is implemented by trackers on which people can close a request without merging it.
type RejectionReader interface {
	// RejectedHead returns the head commit and the URL of the branch's latest request if it was closed without a merge. Otherwise,
	// and while a request is open, both are empty. It considers requests of ralph's own account, and requests into the base by
	// people who may direct ralph.
	RejectedHead(ctx context.Context, head, base string) (commit, url string, err error)
}

// FollowUpReason is the reason why a request needs another run.
type FollowUpReason string

const (
	ChecksFailed     FollowUpReason = "checks-failed"
	Conflict         FollowUpReason = "conflict"
	ChangesRequested FollowUpReason = "changes-requested"
	AskedFor         FollowUpReason = "asked" // a command asks for it
)

// FollowUp is an open request of ralph's that needs another run.
type FollowUp struct {
	Key      string // key of the issue
	Request  RequestRef
	Head     string // branch
	Commit   string // head commit that the reason applies to
	Reason   FollowUpReason
	Feedback string    // log of failed checks, or comments of trusted reviewers; untrusted text
	Threads  []string  // IDs of the review threads in Feedback; see Commander
	At       time.Time // time of the newest item in Feedback, by the forge's clock
}

// FollowUpQuery selects the requests to look at.
type FollowUpQuery struct {
	Prefix string // prefix of the head branches
	// Answered returns, for the request of an issue, the time up to which ralph's own later commits answer people's comments.
	// If it is nil or returns zero, the time is unknown: then comments from before the push of the head commit count as
	// answered. It must be safe for concurrent use.
	Answered func(ctx context.Context, key string) (time.Time, error)
}

// AnsweredFor calls Answered, and returns the zero time if it is nil.
func (q FollowUpQuery) AnsweredFor(ctx context.Context, key string) (time.Time, error) {
	if q.Answered == nil {
		return time.Time{}, nil
	}
	return q.Answered(ctx, key)
}

// Follower is implemented by trackers that report the state of ralph's requests.
type Follower interface {
	// FollowUps lists the open requests of ralph's own account whose head branch has the prefix and that have failed required
	// checks, a conflict with the base, or a request for changes by a person with write permission. Running checks do not
	// count. A request for changes stands until ralph has answered it, even if others move the head, for example to update
	// the branch from its base.
	FollowUps(ctx context.Context, q FollowUpQuery) ([]FollowUp, error)
}

// AutoMerger is implemented by trackers that can merge a request by themselves once all requirements of the project are met.
// Both methods ignore requests of people.
type AutoMerger interface {
	// MergeLater enables auto-merge of ralph's open request for a branch if its head is still the commit. If that is not
	// possible, refused is the reason and what a person can turn on. It refuses drafts and requests with an open review, and
	// then also undoes an earlier call. It is idempotent.
	MergeLater(ctx context.Context, head, commit string) (refused string, err error)
	// KeepOpen undoes MergeLater, if there is such a request.
	KeepOpen(ctx context.Context, head string) error
}

// RequestLister is implemented by trackers that can list ralph's open requests.
type RequestLister interface {
	// Requests returns the open requests of ralph's own account whose head branch has the prefix, by issue key.
	Requests(ctx context.Context, prefix string) (map[string]RequestRef, error)
}

// Severity is the level of a finding.
type Severity string

const (
	OK   Severity = "ok"
	Warn Severity = "warn"
	Fail Severity = "fail"
)

// FindingLabels is the Subject of a finding about labels, which Inspector.CreateLabels fixes.
const FindingLabels = "labels"

// Finding is one result of an inspection, good or bad.
type Finding struct {
	Subject  string   `json:"what"` // inspected subject
	Severity Severity `json:"status"`
	Detail   string   `json:"detail"`        // one line
	Fix      string   `json:"fix,omitempty"` // action for a person; may be empty
}

// Expectation describes what ralph will use of the tracker.
type Expectation struct {
	Labels []string // labels that ralph will read or set
	Push   bool     // ralph will push branches and open requests
}

// Inspector is implemented by trackers that can check ralph's access and setup.
type Inspector interface {
	// Inspect checks reachability, identity, permissions (missing and excessive), labels and the clock. It changes nothing.
	Inspect(ctx context.Context, e Expectation) []Finding
	// CreateLabels creates the labels that do not exist.
	CreateLabels(ctx context.Context, names []string) error
}

// Templater is implemented by trackers whose forge reads the templates of requests from paths of its own.
type Templater interface {
	// RequestTemplates returns these paths in the repository, in order of preference.
	RequestTemplates() []string
}

// Committer is implemented by trackers on which ralph may have an account of its own.
type Committer interface {
	// Committer returns the name and email address that the forge shows for ralph's account on commits; both are empty when
	// ralph uses a person's account.
	Committer(ctx context.Context) (name, email string, err error)
}

// Credentials provides a login for git over HTTPS.
type Credentials interface {
	// GitCredentials returns user name and secret, fresh for each call. Callers must not log or store the secret.
	GitCredentials(ctx context.Context) (user, secret string, err error)
}
