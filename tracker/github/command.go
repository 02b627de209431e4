package github

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// searchProgress records how far comments have been searched for commands.
type searchProgress struct {
	comments time.Time         // time of the newest comment on issues and requests that was read
	pulls    map[int]time.Time // time of the last change, by number of ralph's own requests
}

// Commands searches new comments, and changes on ralph's own open requests, for commands.
func (t *Tracker) Commands(ctx context.Context, prefix string) ([]tracker.Command, error) {
	if _, err := t.Identity(ctx); err != nil { // the answer also tells the forge's time
		return nil, err
	}
	since := t.Stack.Now().Add(-forge.LookBack).Truncate(24 * time.Hour) // constant for a day, since unchanged answers are free
	t.mu.Lock()
	before := t.progress
	t.mu.Unlock()
	comments, last, err := t.newComments(ctx, since, before.comments)
	if err != nil {
		return nil, fmt.Errorf("list new comments: %w", t.Listed(ctx, err))
	}
	now := searchProgress{last, map[int]time.Time{}}
	mine, err := t.OwnRequests(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list pull requests: %w", err)
	}
	var changed []int
	for _, r := range mine {
		if now.pulls[r.Number] = r.Updated; r.Updated.After(since) && !r.Updated.Equal(before.pulls[r.Number]) {
			changed = append(changed, r.Number)
		}
	}
	reviews, err := fanout.Map(ctx, changed, t.reviewComments)
	if err != nil {
		return nil, err
	}
	found, err := t.Inbox.Find(ctx, slices.Concat(append(reviews, comments)...), prefix)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.progress = now
	}
	return found, err
}

// newComments returns the comments on issues and pull requests that were written or edited after since and not before read.
func (t *Tracker) newComments(ctx context.Context, since, newest time.Time) (comments []forge.Comment, last time.Time, err error) {
	opts := gh.IssueListCommentsOptions{Sort: gh.String("updated"), Direction: gh.String("desc"), Since: &since}
	last = newest
	complete := func(c *gh.IssueComment) bool {
		return completeComment(c) && c.GetNodeID() != "" && c.GetIssueURL() != "" && !c.GetUpdatedAt().IsZero()
	}
	count := 0
	err = api.Each(ctx, complete, func(ctx context.Context, p gh.ListOptions) ([]*gh.IssueComment, *gh.Response, error) {
		opts.ListOptions = p
		return t.api.Issues.ListComments(ctx, t.project.Owner, t.project.Name, 0, &opts)
	}, func(list []*gh.IssueComment) bool {
		for _, c := range list {
			if c.GetUpdatedAt().Before(newest) {
				return false
			}
			last = forge.Later(last, c.GetUpdatedAt().Time)
			number, _ := strconv.Atoi(path.Base(c.GetIssueURL()))
			comments = append(comments, forge.Comment{
				ID: c.GetNodeID(), Number: number, Request: path.Base(path.Dir(c.GetHTMLURL())) == "pull", By: account(c.User),
				Body: forge.CommandIn(c.GetBody()), At: c.GetCreatedAt().Time,
			})
		}
		if count += len(list); count >= forge.MaxNewComments {
			t.Settings.Log.Warn("too many new comments; commands in the oldest are not read", "read", count)
		}
		return count < forge.MaxNewComments
	})
	return comments, last, err
}

// reviewComments returns the reviews of a pull request and their newest comments on lines.
func (t *Tracker) reviewComments(ctx context.Context, number int) ([]forge.Comment, error) {
	list, err := t.reviews(ctx, number)
	if err != nil {
		return nil, fmt.Errorf("list the reviews of #%d: %w", number, err)
	}
	var comments []forge.Comment
	add := func(id string, by *gh.User, body string, at gh.Timestamp) {
		comments = append(comments, forge.Comment{
			ID: id, Number: number, Request: true, By: account(by), Body: forge.CommandIn(body), At: at.Time,
		})
	}
	for _, r := range list {
		add(r.GetNodeID(), r.User, r.GetBody(), r.GetSubmittedAt())
	}
	opts := gh.PullRequestListCommentsOptions{Sort: "created", Direction: "desc"}
	count := 0
	err = api.Each(ctx, completeReviewComment, func(ctx context.Context, p gh.ListOptions) ([]*gh.PullRequestComment, *gh.Response, error) {
		opts.ListOptions = p
		return t.api.PullRequests.ListComments(ctx, t.project.Owner, t.project.Name, number, &opts)
	}, func(list []*gh.PullRequestComment) bool {
		for _, c := range list {
			add(c.GetNodeID(), c.User, c.GetBody(), c.GetCreatedAt())
		}
		count += len(list)
		return count < forge.MaxNewComments
	})
	if err != nil {
		return nil, fmt.Errorf("list the review comments of #%d: %w", number, err)
	}
	return comments, nil
}

func completeReviewComment(c *gh.PullRequestComment) bool {
	return c.GetID() > 0 && c.GetNodeID() != "" && !c.GetCreatedAt().IsZero() && completeOrAbsent(c.User)
}
