package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	rosterPages = 10              // that are read of a project's members
	rosterFor   = 5 * time.Minute // how long they count
	maxAsked    = 50              // accounts that are asked about one by one for one issue
)

// roster is the project's members as it lists them itself, those of groups above and of invited groups among them. A
// published one is not changed.
type roster struct {
	members map[int]member
	whole   bool // nobody is missing
	at      time.Time
}

// trusted judges many people, first those named first, at a price that outsiders cannot raise: the project's members are
// listed, and only where the list is refused, or too long, some accounts are asked about one by one. Others than those
// are not trusted. The answer is by id.
func (c *court) trusted(ctx context.Context, people []*user) (map[int]bool, error) {
	out := map[int]bool{}
	var listed roster
	asked, beyond := 0, 0
	for _, u := range people {
		if u.id() <= 0 {
			continue // a deleted account
		}
		if _, judged := out[u.ID]; judged {
			continue
		}
		out[u.ID] = false
		if slices.Contains(c.t.cfg.TrustedBots, u.ID) {
			out[u.ID] = true
			continue
		}
		if listed.at.IsZero() {
			var err error
			if listed, err = c.t.roster(ctx); err != nil {
				return nil, err
			}
		}
		m, isMember := listed.members[u.ID]
		var why string
		var err error
		switch {
		case isMember:
			why, err = c.weigh(ctx, *u, m)
		case listed.whole:
			continue
		case asked == maxAsked:
			beyond++
			continue
		default:
			asked++
			why, err = c.distrust(ctx, u)
		}
		if err != nil {
			return nil, err
		}
		out[u.ID] = why == ""
	}
	if beyond > 0 {
		c.t.cfg.Log.Warn().Int("accounts", beyond).Msg("too many accounts to ask about each; these are not trusted")
	}
	return out, nil
}

// roster lists the project's members, at most once in a while, whoever asks.
func (t *Tracker) roster(ctx context.Context) (roster, error) {
	unlock, err := t.listing.lock(ctx, "members")
	if err != nil {
		return roster{}, err
	}
	defer unlock()
	t.mu.Lock()
	r := t.members
	t.mu.Unlock()
	if now := t.stack.Clock().Now(); now.Sub(r.at) < rosterFor && !now.Before(r.at) {
		return r, nil
	}
	if r, err = t.askRoster(ctx); err != nil {
		return roster{}, fmt.Errorf("list the project's members: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members = r
	return r, nil
}

// askRoster reads the list. Where it may not be seen it is empty and not whole.
func (t *Tracker) askRoster(ctx context.Context) (roster, error) {
	r := roster{members: map[int]member{}, at: t.stack.Clock().Now()}
	read, more := 0, false
	err := eachPage(ctx, t, t.project("/members/all"), nil, func(some []member) bool {
		for _, m := range some {
			if m.ID > 0 {
				r.members[m.ID] = m
			}
		}
		read++
		more = read == rosterPages && len(some) == perPage
		return !more
	})
	var f *forge.Failure
	switch {
	case err == nil:
		r.whole = !more && len(r.members) > 0 // a list of nobody tells nothing
	case forge.Status(err) == http.StatusForbidden, errors.As(err, &f) && f.Action == forge.Skip, forge.Misshapen(err):
	default:
		return roster{}, err
	}
	return r, nil
}
