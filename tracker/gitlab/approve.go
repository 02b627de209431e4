package gitlab

import (
	"context"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// Approved says who put the label on, and why the issue may not be worked.
//
// GitLab keeps who set a label and when, and writes a system note for each edit of title or description, by whom. Both
// are compared: everybody who edited the text at or after the label's time must be able to write to the repository. The
// time of an issue's last update says nothing, because comments move it too. When an edit ticks a task as well, GitLab
// tells of the tick only; so that of an untrusted person every note counts as an edit which is not known to be none.
func (t *Tracker) Approved(ctx context.Context, i tracker.Issue, label string) (by string, reason error) {
	iid, ok := numberOf(i.Key)
	if !ok {
		return "", notFound(i.Key)
	}
	set, err := t.labelled(ctx, iid, label)
	if err != nil {
		return "", t.below(ctx, i.Key, err)
	}
	if set == nil {
		return "", fmt.Errorf("GitLab does not say who put the label %s on; take it off and put it on again", label)
	}
	by = set.User.name()
	self, err := t.identity(ctx)
	if err != nil {
		return by, err
	}
	if self.isBot() && set.User.id() == self.ID {
		return by, fmt.Errorf("label %s was put on by ralph's own account %s; only somebody else can approve", label, by)
	}
	judges := t.court()
	why, err := judges.distrust(ctx, set.User)
	if err != nil {
		return by, err
	}
	if why != "" {
		return by, fmt.Errorf("label %s was put on by %s, who may not direct ralph: %s; somebody who can write to the project has to put it on again", label, by, why)
	}
	notes, err := t.notes(ctx, iid)
	if err != nil {
		return by, err
	}
	for _, n := range notes {
		if !n.System || n.Created.Before(set.Created) || harmless(n.Body) {
			continue
		}
		why, err := judges.distrust(ctx, n.Author)
		if err != nil {
			return by, err
		}
		if why != "" {
			return by, fmt.Errorf("the text was edited by %s after %s had put label %s on: %s; read it, take the label off and put it on again to approve",
				n.Author.name(), by, label, why)
		}
	}
	return by, nil
}

// labelled finds the event by which the issue has the label now; nil when there is none.
func (t *Tracker) labelled(ctx context.Context, iid int, label string) (*labelEvent, error) {
	events, err := pages[labelEvent](ctx, t, t.project("/issues/%d/resource_label_events", iid), nil)
	if err != nil {
		return nil, err
	}
	last := map[string]labelEvent{} // by the label's spelling: two labels may differ in case only
	for _, e := range events {
		if e.Label != nil && tracker.SameLabel(e.Label.Name, label) && e.ID >= last[e.Label.Name].ID {
			last[e.Label.Name] = e
		}
	}
	var found *labelEvent
	for _, e := range last {
		if e.Action == "add" && (found == nil || e.ID > found.ID) {
			found = &e
		}
	}
	return found, nil
}

// harmless reports system notes that tell of no change of the text and that anybody can bring about, such as by naming
// the issue elsewhere.
func harmless(body string) bool {
	for _, start := range []string{"mentioned in ", "closed", "reopened", "assigned to ", "unassigned ", "marked this issue as related to "} {
		if strings.HasPrefix(body, start) {
			return true
		}
	}
	return false
}
