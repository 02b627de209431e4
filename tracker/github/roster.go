package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
)

const (
	rosterPages = 10 // that are read of a project's people
	maxAsked    = 50 // accounts that are asked about one by one for one issue
)

// roster is who may write to the project as the project itself lists them. A published one is not changed.
type roster struct {
	ids   map[int64]bool
	whole bool // nobody is missing, so that who is not in it may not
	at    time.Time
}

// trusted judges many people, first those named first, at a price that outsiders cannot raise: the project's people are
// listed, and only where the list is refused, or too long, some accounts are asked about one by one. Others than those
// are not trusted. The answer is by id.
func (t *Tracker) trusted(ctx context.Context, people []*user) (map[int64]bool, error) {
	out := map[int64]bool{}
	var listed roster
	asked, beyond := 0, 0
	for _, u := range people {
		if u == nil || u.Login == "" || u.ID == 0 {
			continue // a deleted account
		}
		if _, judged := out[u.ID]; judged {
			continue
		}
		out[u.ID] = false
		if u.Type != "User" {
			out[u.ID] = slices.Contains(t.cfg.TrustedBots, u.ID)
			continue
		}
		if listed.at.IsZero() {
			var err error
			if listed, err = t.roster(ctx); err != nil {
				return nil, err
			}
		}
		switch {
		case listed.ids[u.ID]:
			out[u.ID] = true
		case listed.whole:
		case asked == maxAsked:
			beyond++
		default:
			asked++
			may, err := t.mayDirect(ctx, u)
			if err != nil {
				return nil, err
			}
			out[u.ID] = may
		}
	}
	if beyond > 0 {
		t.cfg.Log.Warn().Int("accounts", beyond).Msg("too many accounts to ask about each; these are not trusted")
	}
	return out, nil
}

// roster lists the project's people, at most once in a while, whoever asks.
func (t *Tracker) roster(ctx context.Context) (roster, error) {
	unlock, err := t.trust.asking.lock(ctx, "roster")
	if err != nil {
		return roster{}, err
	}
	defer unlock()
	t.trust.mu.Lock()
	r := t.trust.roster
	t.trust.mu.Unlock()
	if now := t.stack.Clock().Now(); now.Sub(r.at) < trustFor && !now.Before(r.at) {
		return r, nil
	}
	if r, err = t.askRoster(ctx); err != nil {
		return roster{}, fmt.Errorf("list who may write to the project: %w", err)
	}
	t.trust.mu.Lock()
	defer t.trust.mu.Unlock()
	t.trust.roster = r
	return r, nil
}

// askRoster reads the list. Only who may write to the project may see it; for others it is empty and not whole.
func (t *Tracker) askRoster(ctx context.Context) (roster, error) {
	r := roster{ids: map[int64]bool{}, at: t.stack.Clock().Now()}
	for page := 1; page <= rosterPages; page++ {
		var some []struct {
			user
			Permissions struct {
				Push bool `json:"push"`
			} `json:"permissions"`
		}
		path := t.repo("/collaborators?affiliation=all&permission=push&per_page=%d&page=%d", perPage, page)
		_, err := t.call(ctx, http.MethodGet, path, nil, &some)
		if forge.Status(err) == http.StatusForbidden || isSkip(err) || forge.Misshapen(err) {
			return r, nil
		}
		if err != nil {
			return roster{}, err
		}
		for _, u := range some {
			if u.Permissions.Push && u.ID > 0 && u.Type == "User" { // an old server does not know the filter
				r.ids[u.ID] = true
			}
		}
		if len(some) < perPage {
			r.whole = len(r.ids) > 0 // a list of nobody tells nothing
			break
		}
	}
	return r, nil
}
