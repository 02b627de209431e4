package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

const (
	draftTitle = "Draft: " // marks a draft if the project's plan does not support drafts
	maxTitle   = 240       // bytes; GitHub allows 256 characters, of which draftTitle may need some
)

// OpenRequest opens a pull request for the head branch, or updates the open one. It does not change one that a person who may
// direct ralph opened from ralph's branch. It logs reviewers that GitHub does not accept: the work is published without them.
func (t *Tracker) OpenRequest(ctx context.Context, r tracker.Request) (tracker.RequestRef, error) {
	me, release, err := t.Begin(ctx)
	if err != nil {
		return tracker.RequestRef{}, err
	}
	defer release()
	r.Title = cmp.Or(tracker.Line(r.Title, maxTitle), r.Head)
	r.Body = tracker.Fit(r.Body, forge.MaxText)
	p, err := t.pullOf(ctx, r)
	if err == nil && p == nil {
		p, err = t.createPull(ctx, r)
	}
	if err != nil {
		return tracker.RequestRef{}, fmt.Errorf("open a pull request for %s: %w", r.Head, err)
	}
	if by := account(p.User); by.ID != me.ID {
		t.Settings.Log.Warn("leave another's pull request as it is", "pull", p.GetNumber(), "author", by.Name)
		return refOf(p), nil
	}
	if p, err = t.updatePull(ctx, p, r); err != nil {
		return tracker.RequestRef{}, fmt.Errorf("update the pull request for %s: %w", r.Head, err)
	}
	return refOf(p), nil
}

func refOf(p *gh.PullRequest) tracker.RequestRef {
	draft := p.GetDraft() || strings.HasPrefix(p.GetTitle(), draftTitle)
	return tracker.RequestRef{Number: p.GetNumber(), URL: p.GetHTMLURL(), Draft: draft}
}

// requestOf converts a pull request.
func (t *Tracker) requestOf(p *gh.PullRequest) forge.Request {
	return forge.Request{
		RequestRef: refOf(p), Head: p.GetHead().GetRef(), Base: p.GetBase().GetRef(), Commit: p.GetHead().GetSHA(),
		Author: account(p.User), Updated: p.GetUpdatedAt().Time, Fork: !t.fromProject(p), Open: p.GetState() == "open",
		Refused: p.GetState() == "closed" && p.GetMergedAt().IsZero(),
	}
}

func (t *Tracker) requests(ctx context.Context, q forge.RequestQuery) (out []forge.Request, err error) {
	err = t.eachPull(ctx, q, func(p *gh.PullRequest) { out = append(out, t.requestOf(p)) })
	return out, err
}

func (t *Tracker) request(ctx context.Context, number int) (forge.Request, error) {
	p, err := t.pull(ctx, number)
	if err != nil {
		return forge.Request{}, err
	}
	return t.requestOf(p), nil
}

// eachPull passes pull requests to visit, oldest first.
func (t *Tracker) eachPull(ctx context.Context, q forge.RequestQuery, visit func(*gh.PullRequest)) error {
	opts := gh.PullRequestListOptions{State: "open", Sort: "created", Direction: "asc"}
	if q.All {
		opts.State = "all"
	}
	if q.Head != "" {
		opts.Head = t.project.Owner + ":" + q.Head
	}
	return api.Each(ctx, completePull, func(ctx context.Context, p gh.ListOptions) ([]*gh.PullRequest, *gh.Response, error) {
		opts.ListOptions = p
		return t.api.PullRequests.List(ctx, t.project.Owner, t.project.Name, &opts)
	}, func(some []*gh.PullRequest) bool {
		for _, p := range some {
			visit(p)
		}
		return true
	})
}

// pull reads one pull request.
func (t *Tracker) pull(ctx context.Context, number int) (*gh.PullRequest, error) {
	return api.One(ctx, completePull, func(ctx context.Context) (*gh.PullRequest, *gh.Response, error) {
		return t.api.PullRequests.Get(ctx, t.project.Owner, t.project.Name, number)
	})
}

// pullOf returns the open pull request that stands for a branch of this project; nil if ralph has to open its own.
func (t *Tracker) pullOf(ctx context.Context, r tracker.Request) (*gh.PullRequest, error) {
	pulls, list := map[int]*gh.PullRequest{}, []forge.Request(nil)
	err := t.eachPull(ctx, forge.RequestQuery{Head: r.Head}, func(p *gh.PullRequest) {
		pulls[p.GetNumber()], list = p, append(list, t.requestOf(p))
	})
	if err != nil {
		return nil, err
	}
	number, err := t.FindRequest(ctx, list, r)
	return pulls[number], err
}

// fromProject reports whether the commits are in the project itself, not in a fork.
func (t *Tracker) fromProject(p *gh.PullRequest) bool {
	return strings.EqualFold(p.GetHead().GetRepo().GetFullName(), t.project.String())
}

// createPull creates the request. GitHub allows one open pull request per head and base, so repeating is safe: it finds the first.
func (t *Tracker) createPull(ctx context.Context, r tracker.Request) (*gh.PullRequest, error) {
	sameHead := func(p *gh.PullRequest) bool { return completePull(p) && p.GetHead().GetRef() == r.Head }
	post := func(title string, draft bool) (*gh.PullRequest, error) {
		return api.One(transport.WithIdempotent(ctx), sameHead, func(ctx context.Context) (*gh.PullRequest, *gh.Response, error) {
			pull := &gh.NewPullRequest{Title: &title, Head: &r.Head, Base: &r.Base, Body: &r.Body, Draft: &draft}
			return t.api.PullRequests.Create(ctx, t.project.Owner, t.project.Name, pull)
		})
	}
	p, err := post(r.Title, r.Draft)
	for n := 1; headInvalid(err) && n < retry.Attempts; n++ { // not every replica knows a new branch at once
		if err := t.Stack.Clock().Sleep(ctx, retry.Pause(n+1)); err != nil {
			return nil, err
		}
		p, err = post(r.Title, r.Draft)
	}
	if r.Draft && transport.Status(err) == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(err.Error()), "draft") {
		p, err = post(draftTitle+r.Title, false)
	}
	if transport.Status(err) == http.StatusUnprocessableEntity || transport.Uncertain(err) {
		if found, look := t.pullOf(ctx, r); found != nil && look == nil || errors.Is(look, tracker.ErrOccupied) {
			return found, look
		}
	}
	return p, err
}

// headInvalid reports whether the error is GitHub's answer for an unknown branch.
func headInvalid(err error) bool {
	return transport.Status(err) == http.StatusUnprocessableEntity && strings.Contains(err.Error(), "head invalid")
}

// updatePull updates the fields that differ.
func (t *Tracker) updatePull(ctx context.Context, p *gh.PullRequest, r tracker.Request) (*gh.PullRequest, error) {
	if p.GetDraft() != r.Draft && !(r.Draft && strings.HasPrefix(p.GetTitle(), draftTitle)) {
		if err := t.setDraft(ctx, p, r.Draft); err != nil {
			return p, err
		}
	}
	title := r.Title
	if r.Draft && !p.GetDraft() {
		title = draftTitle + title
	}
	var change gh.PullRequest
	if p.GetTitle() != title {
		change.Title = &title
	}
	if p.GetBody() != r.Body {
		change.Body = &r.Body
	}
	if p.GetBase().GetRef() != r.Base {
		change.Base = &gh.PullRequestBranch{Ref: &r.Base}
	}
	if change.Title != nil || change.Body != nil || change.Base != nil {
		now, err := api.One(transport.WithIdempotent(ctx), completePull, func(ctx context.Context) (*gh.PullRequest, *gh.Response, error) {
			return t.api.PullRequests.Edit(ctx, t.project.Owner, t.project.Name, p.GetNumber(), &change)
		})
		if err != nil {
			return p, err
		}
		p = now
	}
	if err := t.addLabels(ctx, p.GetNumber(), tracker.MissingNames(namesOf(p.Labels), r.Labels)); err != nil {
		return p, err
	}
	return p, t.addPeople(ctx, p, r)
}

// setDraft converts a draft to a request ready for review, or back. Without support for drafts, the title will have draftTitle.
func (t *Tracker) setDraft(ctx context.Context, p *gh.PullRequest, draft bool) error {
	mutation := readyMutation
	if draft {
		mutation = draftMutation
	}
	_, err := api.Query(transport.WithIdempotent(ctx), t.graph, mutation, map[string]any{"id": p.GetNodeID()}, completeDraft)
	if err != nil && draft && transport.Skippable(err) {
		return nil
	}
	if err == nil {
		p.Draft = &draft
	}
	return err
}

// addPeople requests reviews and assigns people, where that has not been done yet.
func (t *Tracker) addPeople(ctx context.Context, p *gh.PullRequest, r tracker.Request) error {
	owner, name := t.project.Owner, t.project.Name
	if names := tracker.MissingNames(logins(p.Assignees), r.Assignees); len(names) > 0 {
		_, err := api.One(transport.WithIdempotent(ctx), func(i *gh.Issue) bool { return i.GetNumber() > 0 },
			func(ctx context.Context) (*gh.Issue, *gh.Response, error) {
				return t.api.Issues.AddAssignees(ctx, owner, name, p.GetNumber(), names)
			})
		if err != nil {
			return err
		}
	}
	have := logins(p.RequestedReviewers)
	for _, g := range p.RequestedTeams {
		have = append(have, owner+"/"+g.GetSlug())
	}
	// One by one, since GitHub takes all or none of a list. A second request to a person who has reviewed is harmless.
	for _, reviewer := range tracker.MissingNames(have, r.Reviewers) {
		request := gh.ReviewersRequest{Reviewers: []string{reviewer}}
		if _, slug, isTeam := strings.Cut(reviewer, "/"); isTeam {
			request = gh.ReviewersRequest{TeamReviewers: []string{slug}}
		}
		_, err := api.One(transport.WithIdempotent(ctx), completePull, func(ctx context.Context) (*gh.PullRequest, *gh.Response, error) {
			return t.api.PullRequests.RequestReviewers(ctx, owner, name, p.GetNumber(), request)
		})
		if transport.Skippable(err) {
			t.Settings.Log.Warn("request a review", "error", err, "pull", p.GetNumber(), "reviewer", reviewer)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func logins(users []*gh.User) []string {
	names := make([]string, 0, len(users))
	for _, u := range users {
		names = append(names, u.GetLogin())
	}
	return names
}
