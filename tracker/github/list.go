package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// parallelReads is how many reads one listing makes at a time.
const parallelReads = 4

// List returns the open issues that carry the labels, oldest first, without comments. It costs one request a page of
// issues and of open pull requests, and one for each issue with dependencies, sub-issues or a blocker outside the
// listing; unchanged answers come from the cache. An issue that cannot be decoded is a Problem.
func (t *Tracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	query := url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}}
	var names []string
	for _, l := range q.Labels {
		if l = strings.TrimSpace(l); l != "" && !strings.Contains(l, ",") { // a comma would end it
			names = append(names, l)
		}
	}
	if len(names) > 0 {
		query.Set("labels", strings.Join(names, ","))
	}
	if t.cfg.Assignee != "" {
		query.Set("assignee", t.cfg.Assignee)
	}
	raw, err := pages[listed](ctx, t, t.repo("/issues"), query)
	if err != nil {
		return tracker.Listing{}, err
	}
	var l tracker.Listing
	var wire []issue
	seen := map[int]bool{} // an issue moves to another page when one before it is closed meanwhile
	for n, r := range raw {
		var i issue
		if err := forge.Decode(r.RawMessage, &i); err != nil {
			l.Problems = append(l.Problems, tracker.Problem{Where: t.whereOf(r.RawMessage, n), Err: fmt.Errorf("read the issue: %w", err)})
			continue
		}
		if i.isPull() || seen[i.Number] || !t.selected(i) {
			continue
		}
		seen[i.Number] = true
		wire = append(wire, i)
	}
	slices.SortFunc(wire, func(a, b issue) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return a.Number - b.Number
	})
	taken, err := t.takenBy(ctx, wire)
	if err != nil {
		return tracker.Listing{}, err
	}
	l.Issues = make([]tracker.Issue, len(wire))
	reads, groupCtx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for n, i := range wire {
		l.Issues[n] = t.convert(i)
		l.Issues[n].Taken = taken[i.Number]
		reads.Go(func() error {
			blockers, err := t.blockers(groupCtx, i, seen)
			l.Issues[n].BlockedBy = blockers
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return tracker.Listing{}, err
	}
	return l, nil
}

// selected applies the filters that the API does not.
func (t *Tracker) selected(i issue) bool {
	if m := t.cfg.Milestone; m != "" && (i.Milestone == nil || !strings.EqualFold(i.Milestone.Title, m)) {
		return false
	}
	same := func(a string) bool { return strings.EqualFold(a, i.User.login()) }
	return len(t.cfg.Authors) == 0 || slices.ContainsFunc(t.cfg.Authors, same)
}

// whereOf names an issue that cannot be decoded as well as can be.
func (t *Tracker) whereOf(raw []byte, n int) string {
	var i struct {
		Number json.Number `json:"number"`
	}
	if json.Unmarshal(raw, &i) == nil && i.Number != "" {
		return t.cfg.Project.String() + "#" + i.Number.String()
	}
	return fmt.Sprintf("%s, issue %d of the listing", t.cfg.Project, n+1)
}

// Get reads one issue with its comments, blockers and what it is taken by.
func (t *Tracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := t.read(ctx, key)
	if err != nil {
		return tracker.Issue{}, err
	}
	out := t.convert(i)
	if out.BlockedBy, err = t.blockers(ctx, i, nil); err != nil {
		return tracker.Issue{}, err
	}
	taken, err := t.takenBy(ctx, []issue{i})
	if err != nil {
		return tracker.Issue{}, err
	}
	out.Taken = taken[i.Number]
	out.Comments, err = t.comments(ctx, i.Number)
	return out, t.below(ctx, key, err)
}

// numberOf reads a key; only one spelling of a number is one.
func numberOf(key string) (int, bool) {
	n, err := strconv.ParseInt(key, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == key
}

func (t *Tracker) convert(i issue) tracker.Issue {
	key := strconv.Itoa(i.Number)
	out := tracker.Issue{
		Key: key, ID: "#" + key, Title: i.Title, Body: i.Body, URL: i.HTMLURL, Author: i.User.login(),
		Open: i.State == "open", Created: i.CreatedAt, Updated: i.UpdatedAt,
	}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	out.Priority = priority(out.Labels, t.cfg.Priorities)
	return out
}
