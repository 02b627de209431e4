package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

// Feedback goes into a prompt; the forge keeps the rest.
const (
	maxFeedback = 32 << 10 // bytes in all
	maxPart     = 8 << 10  // bytes of one log, review or comment
)

// reason is why a pull request needs another run. An empty text means it does not.
type reason struct {
	why  tracker.FollowUpReason
	text string
	at   time.Time

	threads []string // of reviews, that the text has
}

// FollowUps checks ralph's own open pull requests. A request has one follow-up: a conflict counts first, then a
// person's review, then checks; its feedback has all of them. A conflict that GitHub has not computed yet is none.
func (t *Tracker) FollowUps(ctx context.Context, q tracker.FollowUpQuery) ([]tracker.FollowUp, error) {
	mine, err := t.ownPulls(ctx, q.Prefix)
	if err != nil {
		return nil, err
	}
	bases := t.bases()
	return forge.Each(ctx, mine, func(ctx context.Context, p *gh.PullRequest) (tracker.FollowUp, bool, error) {
		key := strings.TrimPrefix(p.GetHead().GetRef(), q.Prefix)
		answered, err := q.AnsweredFor(ctx, key)
		if err != nil {
			return tracker.FollowUp{}, false, err
		}
		f, err := t.followUp(ctx, p.GetNumber(), answered, bases)
		if err != nil {
			return f, false, fmt.Errorf("check pull request #%d: %w", p.GetNumber(), err)
		}
		f.Key = key
		return f, f.Reason != "", nil
	})
}

// followUp collects the reasons of one pull request, where ralph has answered reviews up to a time; zero: not known.
func (t *Tracker) followUp(ctx context.Context, number int, answered time.Time, required bases) (f tracker.FollowUp, err error) {
	p, err := api.One(ctx, completePull, func(ctx context.Context) (*gh.PullRequest, *gh.Response, error) {
		return t.api.PullRequests.Get(ctx, t.project.Owner, t.project.Name, number) // a listing does not tell of conflicts
	})
	if err != nil || p.GetState() != "open" {
		return f, err
	}
	reasons := make([]reason, 3)
	if p.Mergeable != nil && !p.GetMergeable() && p.GetMergeableState() == "dirty" {
		text := fmt.Sprintf("The branch %s conflicts with %s.\n", p.GetHead().GetRef(), p.GetBase().GetRef())
		reasons[0] = reason{why: tracker.Conflict, text: text, at: p.GetUpdatedAt().Time}
	}
	if reasons[1], err = t.review(ctx, p, answered); err != nil {
		return f, err
	}
	if reasons[2], err = t.checks(ctx, p, required); err != nil {
		return f, err
	}
	f = tracker.FollowUp{Request: refOf(p), Head: p.GetHead().GetRef(), Commit: p.GetHead().GetSHA()}
	var parts []string
	for _, r := range reasons {
		if r.text == "" {
			continue
		}
		if f.Reason == "" {
			f.Reason = r.why
		}
		f.At, f.Threads = later(f.At, r.at), append(f.Threads, r.threads...)
		parts = append(parts, r.text)
	}
	f.Feedback = tracker.Cut(strings.Join(parts, "\n"), maxFeedback)
	return f, nil
}

// review finds people with write permission who request changes and have not withdrawn that. A review of an earlier commit
// than the head counts until ralph has answered it: the head may be another's.
func (t *Tracker) review(ctx context.Context, p *gh.PullRequest, answered time.Time) (reason, error) {
	list, err := t.reviews(ctx, p.GetNumber())
	if err != nil {
		return reason{}, err
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
	var people []forge.Account
	for _, id := range slices.Backward(order) {
		people = append(people, account(last[id].User))
	}
	trusted, err := t.people.Trusted(ctx, people)
	if err != nil {
		return reason{}, err
	}
	out := reason{why: tracker.ChangesRequested}
	for _, id := range order {
		if !trusted[id] {
			continue
		}
		r := last[id]
		out.text += fmt.Sprintf("%s requests changes:\n%s\n", r.GetUser().GetLogin(), tracker.Cut(r.GetBody(), maxPart))
		out.at = later(out.at, r.GetSubmittedAt().Time)
	}
	if out.text == "" {
		return out, nil
	}
	text, threads, at, err := t.unanswered(ctx, p.GetNumber(), maxFeedback/2)
	out.text, out.threads, out.at = out.text+text, threads, later(out.at, at)
	return out, err
}

// reviews lists the reviews of a pull request, oldest first.
func (t *Tracker) reviews(ctx context.Context, number int) ([]*gh.PullRequestReview, error) {
	complete := func(r *gh.PullRequestReview) bool { return r.GetID() > 0 && r.GetState() != "" && named(r.User) }
	return api.All(ctx, complete, func(ctx context.Context, page gh.ListOptions) ([]*gh.PullRequestReview, *gh.Response, error) {
		return t.api.PullRequests.ListReviews(ctx, t.project.Owner, t.project.Name, number, &page)
	})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
