package github

import (
	"context"
	"fmt"
	"slices"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// FollowUps checks ralph's own open pull requests. A request has one follow-up. Its reason is a conflict before a person's review
// before failed checks; its feedback has all of them. A conflict that GitHub has not computed yet does not count.
func (t *Tracker) FollowUps(ctx context.Context, q tracker.FollowUpQuery) ([]tracker.FollowUp, error) {
	required := t.cachedRequiredChecks()
	return t.FollowUpsOf(ctx, q, func(ctx context.Context, number int, answered time.Time) (f tracker.FollowUp, err error) {
		p, err := t.pull(ctx, number) // a listing does not have conflicts
		if err != nil || p.GetState() != "open" {
			return f, err
		}
		var conflict forge.Cause
		if p.Mergeable != nil && !p.GetMergeable() && p.GetMergeableState() == "dirty" {
			text := fmt.Sprintf("The branch %s conflicts with %s.", p.GetHead().GetRef(), p.GetBase().GetRef())
			conflict = forge.Cause{Why: tracker.Conflict, Text: text, At: p.GetUpdatedAt().Time}
		}
		review, err := t.requestedChanges(ctx, p, answered)
		if err != nil {
			return f, err
		}
		checks, err := t.failedChecks(ctx, p, required)
		return t.requestOf(p).FollowUp(conflict, review, checks), err
	})
}

// requestedChanges finds people with write permission who request changes and have not withdrawn that. A review of an earlier commit than
// the head counts until ralph has answered it: somebody else may have pushed the head.
func (t *Tracker) requestedChanges(ctx context.Context, p *gh.PullRequest, answered time.Time) (forge.Cause, error) {
	list, err := t.reviews(ctx, p.GetNumber())
	if err != nil {
		return forge.Cause{}, err
	}
	var order []int64
	last := map[int64]*gh.PullRequestReview{} // by reviewer; a mere comment withdraws nothing
	for _, r := range list {
		state, by := r.GetState(), r.GetUser().GetID()
		if r.User == nil || state != "APPROVED" && state != "CHANGES_REQUESTED" && state != "DISMISSED" {
			continue
		}
		if last[by] == nil {
			order = append(order, by)
		}
		last[by] = r
	}
	order = slices.DeleteFunc(order, func(id int64) bool {
		r := last[id]
		open := r.GetCommitID() == p.GetHead().GetSHA() || !answered.IsZero() && r.GetSubmittedAt().After(answered)
		return r.GetState() != "CHANGES_REQUESTED" || !open
	})
	trusted, err := t.People.Trusted(ctx, forge.LatestFirst(order, func(id int64) forge.Account { return account(last[id].User) }))
	if err != nil {
		return forge.Cause{}, err
	}
	out := forge.Cause{Why: tracker.ChangesRequested}
	for _, id := range order {
		if !trusted[id] {
			continue
		}
		r := last[id]
		out.Text += fmt.Sprintf("%s requests changes:\n%s\n", r.GetUser().GetLogin(), tracker.Cut(r.GetBody(), forge.MaxPart))
		out.At = forge.Later(out.At, r.GetSubmittedAt().Time)
	}
	if out.Text == "" {
		return out, nil
	}
	text, threads, at, err := t.Unanswered(ctx, p.GetNumber(), forge.MaxFeedback/2)
	out.Text, out.Threads, out.At = out.Text+text, threads, forge.Later(out.At, at)
	return out, err
}

// reviews lists the reviews of a pull request, oldest first. It keeps at most forge.MaxPart bytes of each text.
func (t *Tracker) reviews(ctx context.Context, number int) (list []*gh.PullRequestReview, err error) {
	complete := func(r *gh.PullRequestReview) bool {
		return r.GetID() > 0 && r.GetState() != "" && completeOrAbsent(r.User)
	}
	err = api.Each(ctx, complete, func(ctx context.Context, page gh.ListOptions) ([]*gh.PullRequestReview, *gh.Response, error) {
		return t.api.PullRequests.ListReviews(ctx, t.project.Owner, t.project.Name, number, &page)
	}, func(some []*gh.PullRequestReview) bool {
		for _, r := range some {
			r.Body = gh.String(forge.Start(r.GetBody(), forge.MaxPart))
		}
		list = append(list, some...)
		return true
	})
	return list, err
}
