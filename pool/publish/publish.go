// Package publish decides which commits may leave the repository, and opens pull or merge requests.
//
// Package pool/run calls it while it holds the claim. [Policy] checks every commit first. Everything here is safe for concurrent use.
package publish

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// RequestTemplate is the body of a pull or merge request where the user has none of his own. The closing keyword stands
// here and nowhere else: text of agents and issues has none that works.
const RequestTemplate = `Closes {{issue_id}}

{{report}}

{{template}}
`

// TitleLimit is the length of a request's title, in bytes.
const TitleLimit = 200

// Requests says what ralph's pull and merge requests look like.
type Requests struct {
	Body      prompt.Prompt // template; default RequestTemplate
	Target    string        // branch they are for; default: the base
	Labels    []string
	Reviewers []string
	Assignees []string
	AutoMerge bool // let the forge merge what nobody has to look at, once all that the project asks for has passed
	MaxRounds int  // follow-up runs of one request before a person has to look; default 3; negative: none
}

// WithDefaults fills in what has a default.
func (r Requests) WithDefaults() Requests {
	if r.Body.Template == "" {
		r.Body = prompt.Prompt{Template: RequestTemplate, Name: "built-in request template"}
	}
	r.MaxRounds = cmp.Or(r.MaxRounds, 3)
	return r
}

// Into is the branch that requests are for, by the name of the base, with the remote's name or without it.
func (r Requests) Into(base, remote string) string {
	return cmp.Or(r.Target, strings.TrimPrefix(base, remote+"/"))
}

// Pushed says that the commits are on the branch of the remote.
func Pushed(remote string) string { return "pushed to " + remote }

// Request is one pull or merge request to open or update. The branch must have been pushed.
type Request struct {
	Key, Head string
	Base      string // name of the base, with the remote's name or without it
	Remote    string
	Title     string
	Body      string
	Tip       string // the commit that has been checked
	Verdict   journal.Verdict
}

// KeepOpen is called before other commits are pushed to the branch of a request. If the forge was to merge what was there
// before, and these have to be looked at, that is taken back.
func (r Requests) KeepOpen(ctx context.Context, t tracker.Tracker, branch string, v journal.Verdict) error {
	if merger, ok := tracker.As[tracker.AutoMerger](t); ok && r.AutoMerge && !v.Unattended() {
		if err := merger.KeepOpen(ctx, branch); err != nil {
			return fmt.Errorf("keep the request from being merged: %w", err)
		}
	}
	return nil
}

// Open opens the request, or updates the one that is open for the branch.
func (r Requests) Open(ctx context.Context, t tracker.Tracker, req Request) (journal.Request, error) {
	requester, ok := tracker.As[tracker.Requester](t)
	if !ok {
		return journal.Request{}, fmt.Errorf("request: tracker %s has none", t.Name())
	}
	ref, err := requester.OpenRequest(ctx, tracker.Request{
		Key: req.Key, Head: req.Head, Base: r.Into(req.Base, req.Remote),
		Title: req.Title, Body: req.Body, Draft: req.Verdict.Draft(), Labels: r.Labels, Reviewers: r.Reviewers, Assignees: r.Assignees,
	})
	if err != nil {
		return journal.Request{}, fmt.Errorf("request: %w", err)
	}
	made := journal.Request{Number: ref.Number, URL: ref.URL, Draft: ref.Draft}
	if r.AutoMerge && !made.Draft {
		if made.Unmerged, err = mergeLater(ctx, t, req); err != nil {
			return made, fmt.Errorf("have the request merged: %w", err)
		}
		made.Merging = made.Unmerged == ""
	}
	return made, nil
}

// mergeLater lets the forge merge a request by itself, or says why it does not.
func mergeLater(ctx context.Context, t tracker.Tracker, req Request) (refused string, err error) {
	merger, ok := tracker.As[tracker.AutoMerger](t)
	switch {
	case !ok:
		return "the tracker " + t.Name() + " cannot do that", nil
	case !req.Verdict.Unattended():
		return "the commits change what checks them, so somebody has to look", nil
	}
	return merger.MergeLater(ctx, req.Head, req.Tip)
}
