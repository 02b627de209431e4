package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

const (
	maxLookups    = 200             // maximum number of issues named in texts that one listing reads
	maxOfText     = 20              // maximum number of those per text
	stateLifetime = 5 * time.Minute // lifetime of the state of another project's issue
)

// issueState is the cached state of another project's issue.
type issueState struct {
	open bool
	at   time.Time
}

// namedBlockers returns the issues that an issue's text names as its blockers.
func (t *Tracker) namedBlockers(i *issue) []reference {
	all := blockersIn(i.GetBody(), t.project.Host, t.project.String())
	return slices.DeleteFunc(all, func(r reference) bool { return r.project == "" && r.number == i.GetNumber() })
}

// blockerStates reports, by key, whether the issues named in the texts of some issues are open. Listed issues are. It reads the others,
// each once, up to a limit; beyond that they are missing in the result. It caches those of other projects, since a sweep lists the
// backlog again and again.
func (t *Tracker) blockerStates(ctx context.Context, listed map[int]bool, issues ...*issue) (map[string]bool, error) {
	states := map[string]bool{}
	for n := range listed {
		states[strconv.Itoa(n)] = true
	}
	now := t.Stack.Clock().Now()
	var lookups []reference
	t.mu.Lock()
	for _, i := range issues {
		left := maxOfText
		for _, r := range t.namedBlockers(i) {
			key := t.keyOf(r)
			if _, known := states[key]; known || left == 0 {
				continue
			}
			left--
			switch s, known := t.otherIssues[key]; {
			case known && now.Sub(s.at) < stateLifetime:
				states[key] = s.open
			case len(lookups) < maxLookups:
				states[key], lookups = true, append(lookups, r)
			}
		}
	}
	t.mu.Unlock()
	open, err := fanout.Map(ctx, lookups, t.isOpen)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.otherIssues) >= 10*maxLookups {
		clear(t.otherIssues)
	}
	for n, r := range lookups {
		states[t.keyOf(r)] = open[n]
		if r.project != "" {
			t.otherIssues[t.keyOf(r)] = issueState{open[n], now}
		}
	}
	return states, nil
}

// blockers returns the issues that have to be closed first: dependencies, sub-issues, and those that the text names. It requests
// the first two only if the issue's summary counts some. An issue with an unknown state counts as open, since a person meant it to
// block.
func (t *Tracker) blockers(ctx context.Context, i *issue, states map[string]bool) ([]tracker.Blocker, error) {
	var list []tracker.Blocker
	addBlocker := func(b tracker.Blocker) {
		n := slices.IndexFunc(list, func(have tracker.Blocker) bool { return have.Key == b.Key })
		if n < 0 {
			list = append(list, b)
		} else {
			list[n].Open = list[n].Open || b.Open
		}
	}
	for _, list := range []struct {
		kind  string
		total int
	}{{"dependencies/blocked_by", i.Dependencies.Total}, {"sub_issues", i.SubIssues.Total}} {
		if list.total == 0 {
			continue
		}
		linked, err := t.linkedIssues(ctx, i.GetNumber(), list.kind)
		if err != nil {
			return nil, err
		}
		for _, b := range linked {
			addBlocker(tracker.Blocker{Key: t.keyOf(reference{b.project(), b.GetNumber()}), Open: b.GetState() != "closed"})
		}
	}
	for _, r := range t.namedBlockers(i) {
		open, known := states[t.keyOf(r)]
		addBlocker(tracker.Blocker{Key: t.keyOf(r), Open: open || !known})
	}
	return list, nil
}

// linkedIssues reads one list of related issues, which go-github v62 does not support. Without the feature the list is empty.
func (t *Tracker) linkedIssues(ctx context.Context, number int, kind string) (list []*issue, err error) {
	err = t.Stack.RetryNotFound(ctx, func(ctx context.Context) (err error) {
		list, err = api.All(ctx, completeIssue, func(ctx context.Context, p gh.ListOptions) (some []*issue, resp *gh.Response, err error) {
			path := t.path("/issues/%d/%s?per_page=%d&page=%d", number, kind, p.PerPage, p.Page)
			resp, err = t.do(ctx, http.MethodGet, path, nil, &some)
			return some, resp, err
		})
		return err
	})
	if transport.Missing(err) {
		return nil, nil
	}
	return list, err
}

// keyOf returns the key of an issue of this project or another.
func (t *Tracker) keyOf(r reference) string {
	if r.project == "" || strings.EqualFold(r.project, t.project.String()) {
		return strconv.Itoa(r.number)
	}
	return tracker.Key(fmt.Sprintf("%s#%d", r.project, r.number))
}

// isOpen reads the state of an issue that a text names. If it is not visible, it counts as open.
func (t *Tracker) isOpen(ctx context.Context, r reference) (bool, error) {
	owner, name := t.project.Owner, t.project.Name
	if r.project != "" {
		owner, name, _ = strings.Cut(r.project, "/")
	}
	i, err := api.One(transport.Follow(ctx), func(i *gh.Issue) bool { return i.GetNumber() > 0 && i.GetState() != "" },
		func(ctx context.Context) (*gh.Issue, *gh.Response, error) {
			return t.api.Issues.Get(ctx, owner, name, r.number)
		})
	switch transport.Status(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusMovedPermanently, http.StatusUnavailableForLegalReasons:
		return true, nil
	}
	return err != nil || i.GetState() != "closed", err
}
