package gitlab

import (
	"context"
	"slices"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Approved returns the account that set the label. The reason is an UnapprovedError if the issue may not be worked.
//
// GitLab records who set a label and when, and writes a system note for each edit of title or description, with its author.
// Everybody who edited the text at or after the time of the label must be able to write to the repository. The time of an
// issue's last update does not help, because comments change it too. If an edit also ticks a task, GitLab notes only the
// tick; so every system note of an untrusted person counts as an edit unless it is known to be harmless.
func (t *Tracker) Approved(ctx context.Context, i tracker.Issue, label string) (string, error) {
	iid, ok := forge.Number(i.Key)
	if !ok {
		return "", forge.NotFound(i.Key)
	}
	set, err := t.currentLabelEvent(ctx, iid, label)
	if err != nil {
		return "", t.ExplainPart(ctx, i.Key, err)
	}
	if set == nil {
		return "", &tracker.UnapprovedError{Kind: tracker.LabelUnknown, Label: label}
	}
	by := accountOf(set.User.ID, set.User.Username)
	self, err := t.Identity(ctx)
	if err != nil {
		return by.Name, err
	}
	if self.Bot && by.ID == self.ID {
		return by.Name, &tracker.UnapprovedError{Kind: tracker.LabelUntrusted, Label: label, Account: by.Name, ID: by.ID, Why: tracker.OwnAccount}
	}
	if err := t.People.Approve(ctx, by, tracker.LabelUntrusted, label); err != nil {
		return by.Name, err
	}
	err = tracker.CheckLabelledText(i, *set.CreatedAt, label, func() (tracker.Issue, error) {
		now, err := t.getIssue(transport.WithoutCache(ctx), i.Key)
		if err != nil {
			return tracker.Issue{}, err
		}
		return t.convert(now), nil
	})
	if err != nil {
		return by.Name, err
	}
	return by.Name, t.notes(ctx, iid, func(n *gl.Note) error {
		if !n.System || n.CreatedAt.Before(*set.CreatedAt) || keepsText(n.Body) {
			return nil
		}
		return t.People.Approve(ctx, authorOf(n), tracker.TextUntrusted, label)
	})
}

// currentLabelEvent returns the event that gave the issue its present label; nil if there is none.
func (t *Tracker) currentLabelEvent(ctx context.Context, iid int, label string) (found *gl.LabelEvent, err error) {
	events, err := listAll(ctx, completeEvent, func(o ...gl.RequestOptionFunc) ([]*gl.LabelEvent, *gl.Response, error) {
		return t.api.ResourceLabelEvents.ListIssueLabelEvents(t.project.Path, iid, nil, o...)
	})
	last := map[string]*gl.LabelEvent{} // by the label's spelling: two labels may differ only in case
	for _, e := range events {
		name := e.Label.Name
		if tracker.SameLabel(name, label) && (last[name] == nil || e.ID >= last[name].ID) {
			last[name] = e
		}
	}
	for _, e := range last {
		if e.Action == "add" && (found == nil || e.ID > found.ID) {
			found = e
		}
	}
	return found, err
}

// keepsText reports whether a system note leaves the text unchanged. Anybody can cause such notes, for example by mentioning the
// issue elsewhere.
func keepsText(body string) bool {
	harmless := []string{"mentioned in ", "closed", "reopened", "assigned to ", "unassigned ", "marked this issue as related to "}
	return slices.ContainsFunc(harmless, func(start string) bool { return strings.HasPrefix(body, start) })
}
