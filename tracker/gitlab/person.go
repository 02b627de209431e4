package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// developer is the access level from which on a person can write to the repository.
const developer = 30

// identity is the account that the token speaks for.
func (t *Tracker) identity(ctx context.Context) (user, error) {
	t.mu.Lock()
	self := t.self
	t.mu.Unlock()
	if self != nil {
		return *self, nil
	}
	u, err := one[user](ctx, t, http.MethodGet, "user", nil)
	if err != nil {
		return user{}, fmt.Errorf("ask who ralph is: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.self = &u
	return u, nil
}

// court judges people, each of them once. It serves one call: what it knows is as old as that, but for the roster.
type court struct {
	t    *Tracker
	seen map[int]string // why not, by user id; empty for who may direct ralph
}

func (t *Tracker) court() *court { return &court{t: t, seen: map[int]string{}} }

// distrust says why an account may not direct ralph; empty when it may.
func (c *court) distrust(ctx context.Context, u *user) (string, error) {
	if u.id() <= 0 {
		return "the account is deleted", nil
	}
	if why, known := c.seen[u.ID]; known {
		return why, nil
	}
	why, err := c.judge(ctx, *u)
	if err == nil {
		c.seen[u.ID] = why
	}
	return why, err
}

// judge asks the API. Membership of the groups above and of invited groups counts.
func (c *court) judge(ctx context.Context, u user) (string, error) {
	if slices.Contains(c.t.cfg.TrustedBots, u.ID) {
		return "", nil
	}
	m, err := one[member](ctx, c.t, http.MethodGet, c.t.project("/members/all/%d", u.ID), nil)
	switch {
	case forge.Status(err) == http.StatusNotFound:
		return fmt.Sprintf("%s is no member of the project", u.Username), nil
	case err != nil:
		return "", fmt.Errorf("ask what %s may do: %w", u.Username, err)
	}
	return c.weigh(ctx, u, m)
}

// weigh judges a member, and asks once whether it is a bot if nothing else speaks against it.
func (c *court) weigh(ctx context.Context, u user, m member) (string, error) {
	if why, known := c.seen[u.ID]; known {
		return why, nil
	}
	switch {
	case m.State != "active":
		return fmt.Sprintf("the account %s is %s", u.Username, m.State), nil
	case m.Access < developer:
		return fmt.Sprintf("%s has access level %d, below Developer (%d)", u.Username, m.Access, developer), nil
	}
	whole, err := one[user](ctx, c.t, http.MethodGet, fmt.Sprintf("users/%d", u.ID), nil)
	if err != nil {
		return "", fmt.Errorf("ask who %s is: %w", u.Username, err)
	}
	why := ""
	switch {
	case whole.ID != u.ID:
		why = u.Username + " is not known to GitLab"
	case whole.isBot():
		why = fmt.Sprintf("%s is a bot (id %d) that is not listed in trusted-bots", u.Username, u.ID)
	}
	c.seen[u.ID] = why
	return why, nil
}
