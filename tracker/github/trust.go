package github

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// trustFor is how long an answer about a person's permission counts.
const trustFor = 5 * time.Minute

// trust remembers who may direct ralph. The zero value is ready.
type trust struct {
	asking keyed // one listing of the project's people at a time
	mu     sync.Mutex
	known  map[string]verdict // by login in lower case; guarded by mu
	roster roster             // guarded by mu
}

type verdict struct {
	permission string // "admin", "write", "read" or "none"
	id         int64
	at         time.Time
}

// mayDirect reports whether a user may direct ralph: a person with write permission, or a bot that is configured.
func (t *Tracker) mayDirect(ctx context.Context, u *user) (bool, error) {
	if u == nil || u.Login == "" || u.ID == 0 {
		return false, nil // a deleted account
	}
	if u.Type != "User" {
		return slices.Contains(t.cfg.TrustedBots, u.ID), nil
	}
	v, err := t.permission(ctx, u.Login)
	if err != nil {
		return false, err
	}
	// Names are freed and taken again; the id says whether it is the same person.
	return v.id == u.ID && (v.permission == "write" || v.permission == "admin"), nil
}

// permission asks the API, and remembers the answer for a while.
func (t *Tracker) permission(ctx context.Context, login string) (verdict, error) {
	key := strings.ToLower(login)
	now := t.stack.Clock().Now()
	t.trust.mu.Lock()
	v, known := t.trust.known[key]
	t.trust.mu.Unlock()
	if known && now.Sub(v.at) < trustFor && !now.Before(v.at) {
		return v, nil
	}
	var answer struct {
		Permission string `json:"permission"`
		User       *user  `json:"user"`
	}
	_, err := t.call(ctx, http.MethodGet, t.repo("/collaborators/%s/permission", url.PathEscape(login)), nil, &answer)
	if err != nil && forge.Status(err) != http.StatusNotFound {
		return verdict{}, err
	}
	v = verdict{permission: answer.Permission, at: now}
	if answer.User != nil {
		v.id = answer.User.ID
	}
	t.trust.mu.Lock()
	defer t.trust.mu.Unlock()
	if t.trust.known == nil {
		t.trust.known = map[string]verdict{}
	}
	t.trust.known[key] = v
	return v, nil
}

// comments are what people said on an issue, without ralph's reports.
func (t *Tracker) comments(ctx context.Context, number int) ([]tracker.Comment, error) {
	wire, err := t.wireComments(ctx, number)
	if err != nil || len(wire) == 0 {
		return nil, err
	}
	me, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	wire = slices.DeleteFunc(wire, func(c comment) bool {
		_, _, ours := reportOf(me, c) // of whichever installation
		return ours
	})
	var people []*user
	for _, c := range slices.Backward(wire) { // what was said last counts most
		people = append(people, c.User)
	}
	trusted, err := t.trusted(ctx, people)
	if err != nil {
		return nil, err
	}
	var out []tracker.Comment
	for _, c := range wire {
		out = append(out, tracker.Comment{Author: c.User.login(), Body: c.Body, Created: c.CreatedAt, Trusted: c.User != nil && trusted[c.User.ID]})
	}
	return out, nil
}

// wireComments reads all comments; the API lists them oldest first.
func (t *Tracker) wireComments(ctx context.Context, number int) ([]comment, error) {
	return pages[comment](ctx, t, t.repo("/issues/%d/comments", number), nil)
}
