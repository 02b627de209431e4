// Package publish decides which commits may leave the repository, and opens pull or merge requests.
//
// Its caller is package pool/run, which holds the claim meanwhile. [Policy] checks every commit first. The package
// is safe for concurrent use.
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

// RequestTemplate is the default body of a pull or merge request. It has the only closing keyword that works: those in
// texts of agents and issues are neutralized.
const RequestTemplate = `Closes {{issue_id}}

{{report}}

{{template}}
`

// TitleLimit is the maximum length of a request's title, in bytes.
const TitleLimit = 200

// Requests configures ralph's pull and merge requests.
type Requests struct {
	Body      prompt.Prompt // template; default RequestTemplate
	Target    string        // target branch; default: the base
	Labels    []string
	Reviewers []string
	Assignees []string
	AutoMerge bool // let the forge merge requests that need no person, once all conditions of the project are met
	MaxRounds int  // follow-up runs of one request before a person has to look; default 3; negative: none
}

// WithDefaults replaces zero values by the defaults.
func (r Requests) WithDefaults() Requests {
	if r.Body.Template == "" {
		r.Body = prompt.Prompt{Template: RequestTemplate, Name: "built-in request template"}
	}
	r.MaxRounds = cmp.Or(r.MaxRounds, 3)
	return r
}

// TargetBranch returns the target branch of requests, given the name of the base, with or without the remote's name.
func (r Requests) TargetBranch(base, remote string) string {
	return cmp.Or(r.Target, strings.TrimPrefix(base, remote+"/"))
}

// Pushed says that the commits are on the branch of the remote.
func Pushed(remote string) string { return "pushed to " + remote }

// Request is a pull or merge request to open or update. Its branch must have been pushed.
type Request struct {
	Key, Head string
	Base      string // name of the base, with or without the remote's name
	Remote    string
	Title     string
	Body      string
	Tip       string // the commit that was checked
	Verdict   journal.Verdict
}

// KeepOpen must be called before other commits are pushed to the branch of a request. If the forge was to merge the earlier
// commits and the new ones need a review, it cancels the merge.
func (r Requests) KeepOpen(ctx context.Context, t tracker.Tracker, branch string, v journal.Verdict) error {
	if merger, ok := tracker.As[tracker.AutoMerger](t); ok && r.AutoMerge && !v.Unattended() {
		if err := merger.KeepOpen(ctx, branch); err != nil {
			return fmt.Errorf("keep the request from being merged: %w", err)
		}
	}
	return nil
}

// Open opens a request, or updates the open one of the branch.
func (r Requests) Open(ctx context.Context, t tracker.Tracker, req Request) (journal.Request, error) {
	requester, ok := tracker.As[tracker.Requester](t)
	if !ok {
		return journal.Request{}, fmt.Errorf("request: tracker %s has no requests", t.Name())
	}
	ref, err := requester.OpenRequest(ctx, tracker.Request{
		Key: req.Key, Head: req.Head, Base: r.TargetBranch(req.Base, req.Remote),
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

// mergeLater tells the forge to merge the request by itself, or returns why not.
func mergeLater(ctx context.Context, t tracker.Tracker, req Request) (refused string, err error) {
	merger, ok := tracker.As[tracker.AutoMerger](t)
	switch {
	case !ok:
		return "the tracker " + t.Name() + " cannot do that", nil
	case !req.Verdict.Unattended():
		return "the commits change their own checks, so a person has to look at them", nil
	}
	return merger.MergeLater(ctx, req.Head, req.Tip)
}
