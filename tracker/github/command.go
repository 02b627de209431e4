package github

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

// heard is how far comments have been read for commands.
type heard struct {
	comments time.Time         // up to which comments on issues and requests were
	pulls    map[int]time.Time // of ralph's own requests, when each had changed last
}

// Commands reads new comments, and what is new on ralph's own open requests, for commands.
func (t *Tracker) Commands(ctx context.Context, prefix string) ([]tracker.Command, error) {
	if _, err := t.identity(ctx); err != nil { // with its answer the forge's time is known
		return nil, err
	}
	since := t.stack.Now().Add(-forge.LookBack).Truncate(24 * time.Hour) // the same all day: unchanged answers are free
	t.mu.Lock()
	before := t.heard
	t.mu.Unlock()
	comments, last, err := t.newComments(ctx, since, before.comments)
	if err != nil {
		return nil, fmt.Errorf("list new comments: %w", err)
	}
	now := heard{last, map[int]time.Time{}}
	pulls, err := t.ownPulls(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list pull requests: %w", err)
	}
	var changed []int
	for _, p := range pulls {
		number, at := p.GetNumber(), p.GetUpdatedAt().Time
		if now.pulls[number] = at; at.After(since) && !at.Equal(before.pulls[number]) {
			changed = append(changed, number)
		}
	}
	reviews, err := forge.Each(ctx, changed, func(ctx context.Context, number int) ([]forge.Comment, bool, error) {
		said, err := t.reviewed(ctx, number)
		return said, true, err
	})
	if err != nil {
		return nil, err
	}
	found, err := t.commands.Find(ctx, slices.Concat(append(reviews, comments)...), prefix)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.heard = now
	}
	return found, err
}

// ownPulls are the open pull requests of ralph's account whose head branch has the prefix.
func (t *Tracker) ownPulls(ctx context.Context, prefix string) ([]*gh.PullRequest, error) {
	open, err := t.pulls(ctx, "")
	if err != nil || len(open) == 0 {
		return nil, err
	}
	me, err := t.identity(ctx)
	return slices.DeleteFunc(open, func(p *gh.PullRequest) bool {
		key, own := strings.CutPrefix(p.GetHead().GetRef(), prefix)
		return !own || key == "" || account(p.User).ID != me.ID || !t.ownRepo(p)
	}), err
}

// newComments are the comments on issues and pull requests that were written or edited since a time, and not before another
// up to which they have been read.
func (t *Tracker) newComments(ctx context.Context, since, read time.Time) (said []forge.Comment, last time.Time, err error) {
	opts := gh.IssueListCommentsOptions{Sort: gh.String("updated"), Direction: gh.String("desc"), Since: &since}
	opts.PerPage, last = api.PerPage, read
	complete := func(c *gh.IssueComment) bool {
		return completeComment(c) && c.GetNodeID() != "" && c.GetIssueURL() != "" && !c.GetUpdatedAt().IsZero()
	}
	for opts.Page = 1; opts.Page <= forge.CommentPages; opts.Page++ {
		list, resp, err := t.api.Issues.ListComments(forge.ExpectList(ctx, complete), t.project.Owner, t.project.Name, 0, &opts)
		if err != nil {
			return nil, last, api.Explain(ctx, resp, err)
		}
		for _, c := range list {
			if c.GetUpdatedAt().Before(read) {
				return said, last, nil
			}
			last = later(last, c.GetUpdatedAt().Time)
			number, _ := strconv.Atoi(path.Base(c.GetIssueURL()))
			said = append(said, forge.Comment{
				ID: c.GetNodeID(), Number: number, Request: strings.Contains(c.GetHTMLURL(), "/pull/"), By: account(c.User),
				Body: c.GetBody(), At: c.GetCreatedAt().Time,
			})
		}
		if len(list) < api.PerPage {
			return said, last, nil
		}
	}
	t.cfg.Log.Warn("too many new comments; commands in the oldest are not read", "read", len(said))
	return said, last, nil
}

// reviewed are the reviews of a pull request and their newest comments on lines.
func (t *Tracker) reviewed(ctx context.Context, number int) ([]forge.Comment, error) {
	list, err := t.reviews(ctx, number)
	if err != nil {
		return nil, fmt.Errorf("list the reviews of #%d: %w", number, err)
	}
	var said []forge.Comment
	for _, r := range list {
		said = append(said, forge.Comment{
			ID: r.GetNodeID(), Number: number, Request: true, By: account(r.User), Body: r.GetBody(), At: r.GetSubmittedAt().Time,
		})
	}
	opts := gh.PullRequestListCommentsOptions{Sort: "created", Direction: "desc"}
	opts.PerPage = api.PerPage
	for opts.Page = 1; opts.Page <= forge.CommentPages; opts.Page++ {
		list, resp, err := t.api.PullRequests.ListComments(forge.ExpectList(ctx, completeRemark), t.project.Owner, t.project.Name, number, &opts)
		if err != nil {
			return nil, fmt.Errorf("list the review comments of #%d: %w", number, api.Explain(ctx, resp, err))
		}
		for _, c := range list {
			said = append(said, forge.Comment{
				ID: c.GetNodeID(), Number: number, Request: true, By: account(c.User), Body: c.GetBody(), At: c.GetCreatedAt().Time,
			})
		}
		if len(list) < api.PerPage {
			break
		}
	}
	return said, nil
}

func completeRemark(c *gh.PullRequestComment) bool {
	return c.GetID() > 0 && c.GetNodeID() != "" && !c.GetCreatedAt().IsZero() && named(c.User)
}

// ownHead is the head branch of a pull request of ralph's own account; empty for another's.
func (t *Tracker) ownHead(ctx context.Context, number int) (string, error) {
	me, err := t.identity(ctx)
	if err != nil {
		return "", err
	}
	p, err := api.One(ctx, completePull, func(ctx context.Context) (*gh.PullRequest, *gh.Response, error) {
		return t.api.PullRequests.Get(ctx, t.project.Owner, t.project.Name, number)
	})
	if err != nil || account(p.User).ID != me.ID || !t.ownRepo(p) {
		return "", err
	}
	return p.GetHead().GetRef(), nil
}

// Answer replies, and then reacts to the comment: a crash in between repeats it, and the reply is found.
func (t *Tracker) Answer(ctx context.Context, c tracker.Command, a tracker.Answer) error {
	number := forge.Place(c)
	release, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	me, err := t.identity(ctx)
	if err != nil {
		return err
	}
	if a.Text != "" {
		if err := forge.Reply(ctx, c.ID, a.Text, t.poster(number, me.ID)); err != nil {
			return fmt.Errorf("reply on #%d: %w", number, err)
		}
	}
	if c.Elsewhere {
		return nil
	}
	if err := t.graph.React(ctx, c.ID, forge.ReactionTo(a)); err != nil && !forge.Missing(err) {
		return fmt.Errorf("mark a comment on #%d as answered: %w", number, err)
	}
	t.commands.Done(c.ID)
	return nil
}

// Review implements tracker.Commander.
func (t *Tracker) Review(ctx context.Context, head string) (tracker.FollowUp, error) {
	me, err := t.identity(ctx)
	if err != nil {
		return tracker.FollowUp{}, err
	}
	p, err := t.pullOf(ctx, head)
	if err != nil || p == nil || account(p.User).ID != me.ID {
		return tracker.FollowUp{}, err
	}
	f := tracker.FollowUp{Request: refOf(p), Head: head, Commit: p.GetHead().GetSHA()}
	f.Feedback, f.Threads, f.At, err = t.unanswered(ctx, p.GetNumber(), maxFeedback)
	return f, err
}

// unanswered are the threads of a pull request that ralph has to answer, as feedback.
func (t *Tracker) unanswered(ctx context.Context, number, limit int) (text string, ids []string, last time.Time, err error) {
	me, err := t.identity(ctx)
	if err != nil {
		return "", nil, last, err
	}
	threads, err := t.graph.Threads(ctx, t.project.Owner, t.project.Name, number)
	if err != nil {
		return "", nil, last, fmt.Errorf("read the review threads of #%d: %w", number, err)
	}
	return t.people.Unanswered(ctx, threads, me.ID, limit)
}

// Addressed implements tracker.Commander.
func (t *Tracker) Addressed(ctx context.Context, request int, ids []string, commit string) error {
	release, err := t.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	me, err := t.identity(ctx)
	if err != nil {
		return err
	}
	threads, err := t.graph.Threads(ctx, t.project.Owner, t.project.Name, request)
	for _, one := range threads {
		if err == nil && slices.Contains(ids, one.ID) && !one.AnsweredWith(commit, me.ID) {
			err = t.graph.ReplyToThread(ctx, one.ID, forge.ReplyBody(commit, "Addressed in "+commit+"."))
		}
	}
	if err != nil {
		return fmt.Errorf("answer the review threads of #%d: %w", request, err)
	}
	return nil
}
