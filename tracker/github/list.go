package github

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// List returns the open issues with the labels, oldest first, without comments. GitHub filters by label. It costs one request for
// each page of issues and of open pull requests, one for each workable issue with dependencies or sub-issues, and a limited number
// for blockers named in texts; unchanged answers come from the cache. An issue that cannot be decoded is a Problem.
func (t *Tracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	raw, err := t.listRaw(ctx, q.Labels)
	if err != nil {
		return tracker.Listing{}, t.Listed(ctx, err)
	}
	var l tracker.Listing
	var found []*issue
	open := map[int]bool{} // an issue that moves to another page between two reads is read twice
	for n, text := range raw {
		i, err := transport.Decode(*text, completeIssue)
		if err != nil {
			l.Problems = append(l.Problems, tracker.Problem{Where: t.issueLocation(*text, n), Err: fmt.Errorf("read the issue: %w", err)})
			continue
		}
		if !i.IsPullRequest() && !open[i.GetNumber()] && t.MatchesFilters(account(i.User).Name, i.GetMilestone().GetTitle()) {
			open[i.GetNumber()] = true
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return l, t.checkIssuesEnabled(ctx)
	}
	slices.SortFunc(found, func(a, b *issue) int {
		return cmp.Or(a.GetCreatedAt().Compare(b.GetCreatedAt().Time), a.GetNumber()-b.GetNumber())
	})
	taken, err := t.takenBy(ctx, found)
	if err != nil {
		return tracker.Listing{}, err
	}
	ignoresBlockers := func(i *issue) bool { return taken[i.GetNumber()] != "" || !q.NeedsBlockers(i.labels()) } // blockers do not matter
	states, err := t.blockerStates(ctx, open, slices.DeleteFunc(slices.Clone(found), ignoresBlockers)...)
	if err != nil {
		return tracker.Listing{}, err
	}
	l.Issues, err = fanout.Map(ctx, found, func(ctx context.Context, i *issue) (out tracker.Issue, err error) {
		out = t.convert(i)
		out.Taken = taken[i.GetNumber()]
		if !ignoresBlockers(i) {
			out.BlockedBy, err = t.blockers(ctx, i, states)
		}
		return out, err
	})
	if err != nil {
		return tracker.Listing{}, err
	}
	return l, nil
}

// listRaw reads the pages of the listing. It does not decode the issues yet, so that an invalid one does not hide the others.
func (t *Tracker) listRaw(ctx context.Context, labels []string) ([]*json.RawMessage, error) {
	query := url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}}
	labels = slices.DeleteFunc(tracker.MissingNames(nil, labels), func(l string) bool { return strings.Contains(l, ",") }) // the API separates labels by commas
	if len(labels) > 0 {
		query.Set("labels", strings.Join(labels, ","))
	}
	if t.Settings.Assignee != "" {
		query.Set("assignee", t.Settings.Assignee)
	}
	return api.All(ctx, nil, func(ctx context.Context, p gh.ListOptions) ([]*json.RawMessage, *gh.Response, error) {
		query.Set("per_page", strconv.Itoa(p.PerPage))
		query.Set("page", strconv.Itoa(p.Page))
		var list transport.RawList
		resp, err := t.do(ctx, http.MethodGet, t.path("/issues?%s", query.Encode()), nil, &list)
		return list.Items(), resp, err
	})
}

// issueLocation describes the place of an issue that cannot be decoded.
func (t *Tracker) issueLocation(raw []byte, n int) string {
	var i struct {
		Number json.Number `json:"number"`
	}
	if json.Unmarshal(raw, &i) == nil && i.Number != "" {
		return t.project.String() + "#" + i.Number.String()
	}
	return fmt.Sprintf("%s, issue %d of the listing", t.project, n+1)
}

// Get reads one issue with its comments, its blockers and the request that takes it.
func (t *Tracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := t.issue(ctx, key)
	if err != nil {
		return tracker.Issue{}, err
	}
	states, err := t.blockerStates(ctx, nil, i)
	if err != nil {
		return tracker.Issue{}, err
	}
	out := t.convert(i)
	if out.BlockedBy, err = t.blockers(ctx, i, states); err != nil {
		return tracker.Issue{}, err
	}
	taken, err := t.takenBy(ctx, []*issue{i})
	if err != nil {
		return tracker.Issue{}, err
	}
	out.Taken = taken[i.GetNumber()]
	out.Comments, err = t.Comments(ctx, i.GetNumber())
	return out, t.ExplainPart(ctx, key, err)
}

// checkIssuesEnabled returns an error if the project's issues are disabled, for which GitHub returns an empty list. It asks GitHub at most
// every five minutes.
func (t *Tracker) checkIssuesEnabled(ctx context.Context) error {
	now := t.Stack.Clock().Now()
	t.mu.Lock()
	known := now.Sub(t.enabledAt).Abs() < 5*time.Minute
	t.mu.Unlock()
	if known {
		return nil
	}
	if err := t.CheckUsable(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.enabledAt = now
	return nil
}

// issue reads the issue itself, or returns ErrNotFound.
func (t *Tracker) issue(ctx context.Context, key string) (*issue, error) {
	number, ok := forge.Number(key)
	if !ok {
		return nil, forge.NotFound(key)
	}
	i := new(issue)
	err := t.Stack.RetryNotFound(ctx, func(ctx context.Context) error {
		ctx = transport.Check(ctx, func(body []byte) error {
			got, err := transport.Decode(body, completeIssue)
			if err == nil && got.GetNumber() != number {
				return fmt.Errorf("it is about #%d", got.GetNumber())
			}
			return err
		})
		*i = issue{}
		resp, err := t.do(ctx, http.MethodGet, t.path("/issues/%d", number), nil, i)
		return api.Explain(ctx, resp, err)
	})
	switch {
	case err != nil:
		return nil, t.ExplainMissing(ctx, key, err)
	case i.IsPullRequest():
		return nil, forge.NotFound(key)
	}
	return i, nil
}

// home reads the project.
func (t *Tracker) home(ctx context.Context) (forge.Home, error) {
	r, err := api.One(ctx, func(r *gh.Repository) bool { return r.GetFullName() != "" },
		func(ctx context.Context) (*gh.Repository, *gh.Response, error) {
			return t.api.Repositories.Get(ctx, t.project.Owner, t.project.Name)
		})
	return forge.Home{Name: r.GetFullName(), NoIssues: r != nil && r.HasIssues != nil && !*r.HasIssues}, err
}

func (t *Tracker) convert(i *issue) tracker.Issue {
	key := strconv.Itoa(i.GetNumber())
	labels := i.labels()
	return tracker.Issue{
		Key: key, ID: "#" + key, Title: i.GetTitle(), Body: i.GetBody(), URL: i.GetHTMLURL(), Author: account(i.User).Name,
		Labels: labels, Open: i.GetState() == "open", Created: i.GetCreatedAt().Time, Updated: i.GetUpdatedAt().Time,
		Priority: tracker.PriorityOf(labels, t.Settings.Priorities),
	}
}
