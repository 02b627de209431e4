package gitlab

import (
	"context"
	"net/url"
	"slices"

	"github.com/ralph-pool/ralph/tracker"
)

// notes are all of an issue's notes, oldest first, GitLab's own words about what people did among them.
func (t *Tracker) notes(ctx context.Context, iid int) ([]note, error) {
	query := url.Values{"order_by": {"created_at"}, "sort": {"asc"}}
	all, err := pages[note](ctx, t, t.project("/issues/%d/notes", iid), query)
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{} // a note moves to another page when one before it is deleted meanwhile
	all = slices.DeleteFunc(all, func(n note) bool {
		again := seen[n.ID]
		seen[n.ID] = true
		return again
	})
	slices.SortStableFunc(all, func(a, b note) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// comments are what people said on an issue. Ralph's own reports are left out, and so are internal notes, which are not
// meant for the public that reads what an agent makes of them.
func (t *Tracker) comments(ctx context.Context, iid int) ([]tracker.Comment, error) {
	notes, err := t.notes(ctx, iid)
	if err != nil {
		return nil, err
	}
	var said []note
	var people []*user
	for _, n := range notes {
		if n.System || n.Internal || n.Secret {
			continue
		}
		own, err := t.isReport(ctx, n)
		if err != nil {
			return nil, err
		}
		if own {
			continue
		}
		said = append(said, n)
		people = append(people, n.Author)
	}
	slices.Reverse(people) // what was said last counts most
	trusted, err := t.court().trusted(ctx, people)
	if err != nil {
		return nil, err
	}
	var out []tracker.Comment
	for _, n := range said {
		out = append(out, tracker.Comment{Author: n.Author.name(), Body: n.Body, Created: n.Created, Trusted: trusted[n.Author.id()]})
	}
	return out, nil
}
