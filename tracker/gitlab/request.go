package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"

	"github.com/ralph-pool/ralph/internal/pattern"
)

const (
	draftPrefix = "Draft: "
	maxTitle    = 255 // characters
)

// draftMark is the title prefix of a draft request.
var draftMark = pattern.Lazy(`(?i)^(?:\s*(?:draft:|\[draft\]|\(draft\)|wip:|\[wip\])\s*)+`)

// OpenRequest creates the merge request, or updates the open one of the same source branch. It does not change a request that a
// person who may direct ralph opened for the branch, nor people's changes of labels, reviewers and assignees.
func (t *Tracker) OpenRequest(ctx context.Context, r tracker.Request) (tracker.RequestRef, error) {
	self, release, err := t.Begin(ctx)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	defer release()
	r.Title, r.Body = titleOf(r), tracker.Fit(escapeActions(r.Body), forge.MaxText)
	r.Labels = tracker.MissingNames(nil, r.Labels)
	for n, l := range r.Labels {
		if err := checkLabel(l); err != nil {
			return tracker.RequestRef{}, err
		}
		if r.Labels[n], err = t.spelling(ctx, l); err != nil {
			return tracker.RequestRef{}, err
		}
	}
	m, err := t.findRequest(ctx, r)
	if err == nil && m == nil {
		m, err = t.createRequest(ctx, r)
	}
	if err == nil {
		m, err = t.updateRequest(ctx, m, r, self)
	}
	if err != nil {
		return tracker.RequestRef{}, err
	}
	return refOf(m), nil
}

func refOf(m *gl.MergeRequest) tracker.RequestRef {
	return tracker.RequestRef{Number: m.IID, URL: m.WebURL, Draft: m.Draft}
}

// fromProject reports whether a request comes from the project itself, not from a fork.
func fromProject(m *gl.MergeRequest) bool { return m.SourceProjectID == m.TargetProjectID }

// requestOf converts a merge request.
func requestOf(m *gl.MergeRequest) forge.Request {
	return forge.Request{
		RequestRef: refOf(m), Head: m.SourceBranch, Base: m.TargetBranch, Commit: m.SHA, Author: account(m.Author),
		Updated: timeOrZero(m.UpdatedAt), Fork: !fromProject(m), Open: m.State == "opened", Refused: m.State == "closed",
	}
}

func requestsOf(list []*gl.MergeRequest) (out []forge.Request) {
	for _, m := range list {
		out = append(out, requestOf(m))
	}
	return out
}

func (t *Tracker) requests(ctx context.Context, q forge.RequestQuery) ([]forge.Request, error) {
	return allRequests(ctx, t.mergePages(q))
}

// allRequests reads a list of merge requests without keeping the descriptions.
func allRequests(ctx context.Context, call pageCall[gl.MergeRequest]) (out []forge.Request, err error) {
	err = eachPage(ctx, completeMerge, call, func(some []*gl.MergeRequest) bool {
		out = append(out, requestsOf(some)...)
		return true
	})
	return out, err
}

func (t *Tracker) request(ctx context.Context, iid int) (forge.Request, error) {
	m, err := t.merge(ctx, iid)
	if err != nil {
		return forge.Request{}, err
	}
	return requestOf(m), nil
}

// mergePages lists merge requests, oldest first.
func (t *Tracker) mergePages(q forge.RequestQuery) pageCall[gl.MergeRequest] {
	opts := gl.ListProjectMergeRequestsOptions{
		State:   gl.Ptr("opened"),
		Scope:   gl.Ptr("all"),
		OrderBy: gl.Ptr("created_at"),
		Sort:    gl.Ptr("asc"),
	}
	if q.All {
		opts.State = gl.Ptr("all")
	}
	if q.Head != "" {
		opts.SourceBranch = &q.Head
	}
	if q.Author != 0 {
		opts.AuthorID = gl.Ptr(int(q.Author))
	}
	return func(o ...gl.RequestOptionFunc) ([]*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.ListProjectMergeRequests(t.project.Path, &opts, o...)
	}
}

// merge reads one merge request.
func (t *Tracker) merge(ctx context.Context, iid int) (*gl.MergeRequest, error) {
	return getOne(ctx, completeMerge, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.GetMergeRequest(t.project.Path, iid, nil, o...)
	})
}

// findRequest returns the open request that stands for the branch; nil if ralph has to open its own.
func (t *Tracker) findRequest(ctx context.Context, r tracker.Request) (*gl.MergeRequest, error) {
	list, err := listAll(ctx, completeMerge, t.mergePages(forge.RequestQuery{Head: r.Head}))
	if err != nil {
		return nil, err
	}
	number, err := t.FindRequest(ctx, requestsOf(list), r)
	for _, m := range list {
		if m.IID == number {
			return m, err
		}
	}
	return nil, err
}

// createRequest creates the request. After a conflict, or a write with an uncertain effect, it looks for an existing one.
func (t *Tracker) createRequest(ctx context.Context, r tracker.Request) (*gl.MergeRequest, error) {
	body := &gl.CreateMergeRequestOptions{
		Title: &r.Title, Description: &r.Body, SourceBranch: &r.Head, TargetBranch: &r.Base, RemoveSourceBranch: gl.Ptr(false),
	}
	if len(r.Labels) > 0 {
		body.Labels = (*gl.LabelOptions)(&r.Labels)
	}
	for _, people := range []struct {
		names []string
		ids   **[]int
	}{{r.Reviewers, &body.ReviewerIDs}, {r.Assignees, &body.AssigneeIDs}} {
		ids, err := t.userIDs(ctx, people.names)
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			*people.ids = &ids
		}
	}
	same := func(m *gl.MergeRequest) bool { return completeMerge(m) && m.SourceBranch == r.Head }
	m, err := getOne(ctx, same, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.CreateMergeRequest(t.project.Path, body, o...)
	})
	if transport.Uncertain(err) || transport.Status(err) == http.StatusConflict {
		if found, look := t.findRequest(ctx, r); found != nil && look == nil || errors.Is(look, tracker.ErrOccupied) {
			return found, look
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open a merge request for %s: %w", r.Head, err)
	}
	return m, nil
}

// updateRequest updates the fields that differ, if the request is ralph's.
func (t *Tracker) updateRequest(ctx context.Context, m *gl.MergeRequest, r tracker.Request, self forge.Account) (*gl.MergeRequest, error) {
	if account(m.Author).ID != self.ID {
		return m, nil
	}
	var body gl.UpdateMergeRequestOptions
	set := func(field **string, is, want string) {
		if is != want {
			*field = &want
		}
	}
	set(&body.Title, m.Title, r.Title)
	set(&body.Description, m.Description, r.Body)
	set(&body.TargetBranch, m.TargetBranch, cmp.Or(r.Base, m.TargetBranch))
	if missing := tracker.MissingNames(m.Labels, r.Labels); len(missing) > 0 {
		body.AddLabels = (*gl.LabelOptions)(&missing)
	}
	if body == (gl.UpdateMergeRequestOptions{}) {
		return m, nil
	}
	same := func(is *gl.MergeRequest) bool { return completeMerge(is) && is.IID == m.IID }
	is, err := getOne(ctx, same, func(o ...gl.RequestOptionFunc) (*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.UpdateMergeRequest(t.project.Path, m.IID, &body, o...)
	})
	if err != nil {
		return nil, fmt.Errorf("update merge request !%d: %w", m.IID, err)
	}
	return is, nil
}

// titleOf returns a title of one line within GitLab's limit, with the prefix of a draft if r is one.
func titleOf(r tracker.Request) string {
	text, _ := tracker.Clean(r.Title)
	text = draftMark().ReplaceAllString(strings.Join(strings.Fields(text), " "), "")
	text = cmp.Or(text, r.Head)
	if r.Draft {
		text = draftPrefix + text
	}
	if runes := []rune(text); len(runes) > maxTitle {
		text = string(runes[:maxTitle-1]) + "…"
	}
	return text
}

// userIDs returns the IDs of user names. It logs unknown names and skips them: the work is published without them.
func (t *Tracker) userIDs(ctx context.Context, names []string) ([]int, error) {
	var ids []int
	for _, name := range names {
		found, err := listAll(ctx, completeUser, func(o ...gl.RequestOptionFunc) ([]*gl.User, *gl.Response, error) {
			return t.api.Users.ListUsers(&gl.ListUsersOptions{Username: &name}, o...)
		})
		if err != nil {
			return nil, fmt.Errorf("find the user %q: %w", name, err)
		}
		if len(found) != 1 || !strings.EqualFold(found[0].Username, name) {
			t.Settings.Log.Warn("a reviewer or assignee is not known to GitLab", "user", name)
			continue
		}
		ids = append(ids, found[0].ID)
	}
	return ids, nil
}
