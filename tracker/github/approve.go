package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Approved says who put the label on, and why the issue may not be worked: the person lacks write permission, or
// somebody who lacks it has edited title or body since.
//
// The REST API lists label and rename events, but not edits of a body. Those come from GraphQL, and only when the issue
// has changed after it was labelled. An edit within the label's second counts as after it.
func (t *Tracker) Approved(ctx context.Context, i tracker.Issue, name string) (string, error) {
	number, ok := numberOf(i.Key)
	if !ok {
		return "", notFound(i.Key)
	}
	events, err := pages[event](ctx, t, t.repo("/issues/%d/events", number), nil)
	if err != nil {
		return "", t.below(ctx, i.Key, err)
	}
	labelled, err := lastLabelled(events, name)
	if err != nil {
		return "", err
	}
	by := labelled.Actor.login()
	trusted, err := t.mayDirect(ctx, labelled.Actor)
	switch {
	case err != nil:
		return by, err
	case !trusted && labelled.Actor != nil && labelled.Actor.Type != "User":
		return by, fmt.Errorf("label %s was put on by the bot %s; to allow it list its id %d in trusted-bots", name, by, labelled.Actor.ID)
	case !trusted:
		return by, fmt.Errorf("label %s was put on by %s, who has no write permission; somebody who has must put it on again", name, by)
	}
	for _, e := range events {
		if e.Event != "renamed" || e.CreatedAt.Before(labelled.CreatedAt) {
			continue
		}
		if err := t.allowEdit(ctx, e.Actor, "title", name); err != nil {
			return by, err
		}
	}
	return by, t.bodyApproved(ctx, number, i.Updated, labelled.CreatedAt, name)
}

// lastLabelled finds the event that put on the label as it is now.
func lastLabelled(events []event, name string) (event, error) {
	var last event
	for _, e := range events {
		if !tracker.SameLabel(e.Label.Name, name) || e.CreatedAt.Before(last.CreatedAt) {
			continue
		}
		switch e.Event {
		case labelPut, labelTaken:
			last = e
		}
	}
	if last.Event != labelPut {
		return event{}, fmt.Errorf("nothing tells who put the label %s on; put it on again", name)
	}
	return last, nil
}

// bodyApproved looks at the edits of the body since the label.
func (t *Tracker) bodyApproved(ctx context.Context, number int, updated, since time.Time, name string) error {
	if !updated.IsZero() && updated.Before(since) {
		return nil
	}
	history, err := t.bodyEdits(ctx, number)
	if err != nil {
		return fmt.Errorf("see who edited #%d since it was labelled: %w", number, err)
	}
	if history.last.Before(since) {
		return nil
	}
	found := false
	for _, e := range history.edits {
		if e.at.Before(since) {
			continue
		}
		found = true
		if err := t.allowEdit(ctx, e.by, "text", name); err != nil {
			return err
		}
	}
	if !found || history.more {
		return fmt.Errorf("nothing tells who edited the text since the label %s was put on; put it on again", name)
	}
	return nil
}

// allowEdit is nil when the editor may direct ralph.
func (t *Tracker) allowEdit(ctx context.Context, by *user, what, name string) error {
	trusted, err := t.mayDirect(ctx, by)
	if err != nil || trusted {
		return err
	}
	return errors.New(by.login() + ", who has no write permission, edited the " + what + " after the label " + name +
		" was put on; read it and put the label on again")
}
