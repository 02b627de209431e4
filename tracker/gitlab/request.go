package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	draft    = "Draft: "
	maxTitle = 255 // characters
)

// draftMark is how a title says that its request is a draft.
var draftMark = regexp.MustCompile(`(?i)^(?:\s*(?:draft:|\[draft\]|\(draft\)|wip:|\[wip\])\s*)+`)

// OpenRequest makes the merge request, or updates the open one of the same source branch. A request that somebody else
// opened for the branch is theirs and is left as it is. What people changed of labels, reviewers and assignees stays.
func (t *Tracker) OpenRequest(ctx context.Context, r tracker.Request) (tracker.RequestRef, error) {
	release, err := t.writing.lock(ctx, "request "+r.Head)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	defer release()
	if r.Labels, err = t.spellings(ctx, r.Labels); err != nil {
		return tracker.RequestRef{}, err
	}
	found, err := t.findRequest(ctx, r)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	if found == nil {
		if found, err = t.createRequest(ctx, r); err != nil {
			return tracker.RequestRef{}, err
		}
	}
	return t.updateRequest(ctx, *found, r)
}

func ref(m merge) tracker.RequestRef {
	return tracker.RequestRef{Number: m.IID, URL: m.WebURL, Draft: m.Draft}
}

// findRequest finds the open request of the branch, rather the one for the base; nil when there is none.
func (t *Tracker) findRequest(ctx context.Context, r tracker.Request) (*merge, error) {
	query := url.Values{"state": {"opened"}, "scope": {"all"}, "source_branch": {r.Head}}
	all, err := pages[merge](ctx, t, t.project("/merge_requests"), query)
	if err != nil {
		return nil, err
	}
	var found *merge
	for _, m := range all {
		if m.State == "opened" && m.Source == r.Head && m.own() && (found == nil || m.Target == r.Base) {
			found = &m
		}
	}
	return found, nil
}

// createRequest makes the request. When that may have happened without an answer, or somebody was faster, it is looked
// for.
func (t *Tracker) createRequest(ctx context.Context, r tracker.Request) (*merge, error) {
	body := gl.CreateMergeRequestOptions{
		Title: gl.Ptr(titleOf(r)), Description: gl.Ptr(fit(r.Body, maxText)), SourceBranch: &r.Head, TargetBranch: &r.Base,
		RemoveSourceBranch: gl.Ptr(false),
	}
	if len(r.Labels) > 0 {
		body.Labels = (*gl.LabelOptions)(&r.Labels)
	}
	reviewers, err := t.accounts(ctx, r.Reviewers)
	if err != nil {
		return nil, err
	}
	assignees, err := t.accounts(ctx, r.Assignees)
	if err != nil {
		return nil, err
	}
	if len(reviewers) > 0 {
		body.ReviewerIDs = &reviewers
	}
	if len(assignees) > 0 {
		body.AssigneeIDs = &assignees
	}
	m, err := t.writeRequest(ctx, http.MethodPost, t.project("/merge_requests"), &body, func(m merge) bool { return m.Source == r.Head })
	if forge.Uncertain(err) || forge.Status(err) == http.StatusConflict {
		if found, look := t.findRequest(ctx, r); look == nil && found != nil {
			return found, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open a merge request for %s: %w", r.Head, err)
	}
	return &m, nil
}

// writeRequest makes a request whose answer is the merge request that it was about.
func (t *Tracker) writeRequest(ctx context.Context, method, path string, body any, same func(merge) bool) (merge, error) {
	var m merge
	ctx = forge.Into(ctx, func(answer []byte) error {
		if err := forge.Decode(answer, &m); err != nil {
			return err
		}
		if !same(m) {
			return fmt.Errorf("it is about !%d", m.IID)
		}
		return nil
	})
	_, err := t.call(ctx, method, path, nil, body, nil)
	return m, err
}

// updateRequest makes the request what it shall be, if it is ralph's and is not so yet.
func (t *Tracker) updateRequest(ctx context.Context, m merge, r tracker.Request) (tracker.RequestRef, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	if m.Author.id() != self.ID {
		return ref(m), nil
	}
	var body gl.UpdateMergeRequestOptions
	set := func(field **string, is, shall string) {
		if is != shall {
			*field = &shall
		}
	}
	set(&body.Title, m.Title, titleOf(r))
	set(&body.Description, m.Body, fit(r.Body, maxText))
	set(&body.TargetBranch, m.Target, cmp.Or(r.Base, m.Target))
	var missing []string
	for _, l := range r.Labels {
		if !hasAll(m.Labels, []string{l}) {
			missing = append(missing, l)
		}
	}
	if len(missing) > 0 {
		body.AddLabels = (*gl.LabelOptions)(&missing)
	}
	if body == (gl.UpdateMergeRequestOptions{}) {
		return ref(m), nil
	}
	path := t.project("/merge_requests/%d", m.IID)
	is, err := t.writeRequest(ctx, http.MethodPut, path, &body, func(is merge) bool { return is.IID == m.IID })
	if err != nil {
		return tracker.RequestRef{}, fmt.Errorf("update merge request !%d: %w", m.IID, err)
	}
	return ref(is), nil
}

// titleOf is one line, within GitLab's limit, that says draft when the request is one and only then.
func titleOf(r tracker.Request) string {
	text, _ := tracker.Clean(r.Title)
	text = draftMark.ReplaceAllString(strings.Join(strings.Fields(text), " "), "")
	if text == "" {
		text = r.Head
	}
	if r.Draft {
		text = draft + text
	}
	if runes := []rune(text); len(runes) > maxTitle {
		text = string(runes[:maxTitle-1]) + "…"
	}
	return text
}

// accounts finds the ids of user names.
func (t *Tracker) accounts(ctx context.Context, names []string) ([]int, error) {
	var ids []int
	for _, name := range names {
		found, err := pages[user](ctx, t, "users", url.Values{"username": {name}})
		if err != nil {
			return nil, fmt.Errorf("find the user %q: %w", name, err)
		}
		if len(found) != 1 || !strings.EqualFold(found[0].Username, name) {
			return nil, fmt.Errorf("find the user %q: GitLab has none of that name; mend reviewers or assignees in the configuration", name)
		}
		ids = append(ids, found[0].ID)
	}
	return ids, nil
}
