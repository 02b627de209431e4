package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// Events of labels, in GitHub's spelling.
const (
	labelSet     = "labeled"   //nolint:misspell // GitHub's
	labelRemoved = "unlabeled" //nolint:misspell // GitHub's
)

// completeEvent also requires the label in an event about a label.
func completeEvent(e *gh.IssueEvent) bool {
	about := e.GetEvent() == labelSet || e.GetEvent() == labelRemoved
	return e.GetEvent() != "" && !e.GetCreatedAt().IsZero() && (!about || e.GetLabel().GetName() != "") && completeOrAbsent(e.Actor)
}

// Approved returns the account that set the label. The reason is an UnapprovedError if that account, or somebody who has edited
// title or body since, lacks write permission.
//
// The REST API lists label and rename events, but not edits of a body. Those come from GraphQL. An edit within the same second as
// the label counts as later.
func (t *Tracker) Approved(ctx context.Context, i tracker.Issue, name string) (string, error) {
	number, ok := forge.Number(i.Key)
	if !ok {
		return "", forge.NotFound(i.Key)
	}
	events, err := api.All(ctx, completeEvent, func(ctx context.Context, p gh.ListOptions) ([]*gh.IssueEvent, *gh.Response, error) {
		return t.api.Issues.ListIssueEvents(ctx, t.project.Owner, t.project.Name, number, &p)
	})
	if err != nil {
		return "", t.ExplainPart(ctx, i.Key, err)
	}
	labelEvent := currentLabelEvent(events, name)
	if labelEvent == nil {
		return "", &tracker.UnapprovedError{Kind: tracker.LabelUnknown, Label: name}
	}
	by := account(labelEvent.Actor)
	if err := t.People.Approve(ctx, by, tracker.LabelUntrusted, name); err != nil {
		return by.Name, t.markOwnAccount(ctx, by, err)
	}
	for _, e := range events {
		if e.GetEvent() != "renamed" || e.GetCreatedAt().Before(labelEvent.GetCreatedAt().Time) {
			continue
		}
		if err := t.People.Approve(ctx, account(e.Actor), tracker.TitleUntrusted, name); err != nil {
			return by.Name, err
		}
	}
	since := labelEvent.GetCreatedAt().Time
	err = tracker.CheckLabelledText(i, since, name, func() (tracker.Issue, error) {
		now, err := t.issue(transport.WithoutCache(ctx), i.Key)
		if err != nil {
			return tracker.Issue{}, err
		}
		return t.convert(now), nil
	})
	if err != nil {
		return by.Name, err
	}
	return by.Name, t.checkBodyEdits(ctx, number, since, name)
}

// markOwnAccount replaces the reason of an UnapprovedError if the account is ralph's own.
func (t *Tracker) markOwnAccount(ctx context.Context, by forge.Account, err error) error {
	if why, is := errors.AsType[*tracker.UnapprovedError](err); is {
		self, failed := t.Identity(ctx)
		if failed != nil {
			return failed
		}
		if self.ID == by.ID {
			why.Why = tracker.OwnAccount
		}
	}
	return err
}

// currentLabelEvent returns the event that gave the issue its present label; nil if there is none.
func currentLabelEvent(events []*gh.IssueEvent, name string) *gh.IssueEvent {
	var last *gh.IssueEvent
	for _, e := range events {
		about := e.GetEvent() == labelSet || e.GetEvent() == labelRemoved
		if about && tracker.SameLabel(e.GetLabel().GetName(), name) && (last == nil || !e.GetCreatedAt().Before(last.GetCreatedAt().Time)) {
			last = e
		}
	}
	if last.GetEvent() != labelSet {
		return nil
	}
	return last
}

// checkBodyEdits checks who edited the body since the label.
func (t *Tracker) checkBodyEdits(ctx context.Context, number int, since time.Time, name string) error {
	history, err := t.bodyEdits(ctx, number)
	if err != nil {
		return fmt.Errorf("see who edited #%d since it was labelled: %w", number, err)
	}
	if last, err := history.lastEdit(); err == nil && last.Before(since) {
		return nil
	}
	found, edits := false, history.UserContentEdits
	for _, e := range edits.Nodes {
		if e.EditedAt.Before(since) {
			continue
		}
		found = true
		if err := t.People.Approve(ctx, e.Editor.Account(), tracker.TextUntrusted, name); err != nil {
			return err
		}
	}
	if !found || edits.TotalCount > len(edits.Nodes) {
		return &tracker.UnapprovedError{Kind: tracker.EditUnknown, Label: name}
	}
	return nil
}
