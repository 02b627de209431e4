package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// parallelReads is how many reads one listing makes at a time.
const parallelReads = 4

// List returns the open issues that carry the labels, oldest first, without comments. All open issues are read, whatever
// the query: GitLab tells labels apart by case and shows what blocks an issue only from the side of the blocker. It
// costs one request a page of 100 issues, and one for each issue that blocks others or has a merge request of a person;
// unchanged pages come from the cache. An issue that cannot be decoded is a Problem.
//
// An open blocker in another project, or a closed one, is seen by Get alone.
func (t *Tracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	query := url.Values{"state": {"opened"}, "order_by": {"created_at"}, "sort": {"asc"}, "pagination": {"keyset"}}
	raw, err := pages[listed](ctx, t, t.project("/issues"), query)
	if err != nil {
		return tracker.Listing{}, err
	}
	var l tracker.Listing
	open := map[int]issue{}
	for n, r := range raw {
		i, err := r.decode()
		if err != nil {
			l.Problems = append(l.Problems, tracker.Problem{Where: fmt.Sprintf("%s, issue %d of the listing", t.cfg.Project, n+1), Err: err})
			continue
		}
		open[i.IID] = i // one that moved to another page meanwhile is read twice
	}
	chosen := t.choose(open, q)
	blocks, err := t.blockersOf(ctx, open, chosen)
	if err != nil {
		return tracker.Listing{}, err
	}
	taken, err := t.takenAmong(ctx, chosen)
	if err != nil {
		return tracker.Listing{}, err
	}
	for _, i := range chosen {
		out := t.convert(i)
		out.BlockedBy, out.Taken = blocks[i.IID], taken[i.IID]
		l.Issues = append(l.Issues, out)
	}
	return l, nil
}

// choose returns the issues that a query and the configuration want, in a stable order.
func (t *Tracker) choose(open map[int]issue, q tracker.Query) []issue {
	var chosen []issue
	for _, i := range open {
		if i.State == "opened" && t.selected(i) && hasAll(i.Labels, q.Labels) && workable(i) {
			chosen = append(chosen, i)
		}
	}
	slices.SortFunc(chosen, func(a, b issue) int { return cmp.Or(a.Created.Compare(b.Created), a.IID-b.IID) })
	return chosen
}

// workable reports an issue in the narrow sense. Incidents, tasks and the like are work for ralph only when somebody
// has labelled them.
func workable(i issue) bool { return i.Type == "" || i.Type == "issue" || len(i.Labels) > 0 }

// selected applies the filters of the configuration.
func (t *Tracker) selected(i issue) bool {
	if m := t.cfg.Milestone; m != "" && (i.Milestone == nil || !strings.EqualFold(i.Milestone.Title, m)) {
		return false
	}
	if a := t.cfg.Assignee; a != "" && !slices.ContainsFunc(i.Assignees, func(u user) bool { return strings.EqualFold(u.Username, a) }) {
		return false
	}
	same := func(a string) bool { return strings.EqualFold(a, i.Author.name()) }
	return len(t.cfg.Authors) == 0 || slices.ContainsFunc(t.cfg.Authors, same)
}

func hasAll(have, want []string) bool {
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h string) bool { return tracker.SameLabel(h, w) }) {
			return false
		}
	}
	return true
}

// Get reads one issue with its comments, blockers and what it is taken by.
func (t *Tracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := t.read(ctx, key)
	if err != nil {
		return tracker.Issue{}, err
	}
	out := t.convert(i)
	if out.BlockedBy, err = t.blockers(ctx, i); err != nil {
		return tracker.Issue{}, err
	}
	if out.Taken, err = t.takenBy(ctx, i); err != nil {
		return tracker.Issue{}, err
	}
	out.Comments, err = t.comments(ctx, i.IID)
	return out, t.below(ctx, key, err)
}

// read reads the issue itself, or ErrNotFound.
func (t *Tracker) read(ctx context.Context, key string) (issue, error) {
	if ctx.Err() != nil {
		return issue{}, context.Cause(ctx)
	}
	iid, ok := numberOf(key)
	if !ok {
		return issue{}, notFound(key)
	}
	var i issue
	err := t.stack.Twice(ctx, func(ctx context.Context) error {
		_, err := t.call(forge.Into(ctx, about(iid, &i)), http.MethodGet, t.project("/issues/%d", iid), nil, nil, nil)
		return err
	})
	if err != nil {
		return issue{}, gone(key, err)
	}
	return i, nil
}

// about decodes the issue of that number, and none else.
func about(iid int, out *issue) func([]byte) error {
	return func(body []byte) error {
		if err := forge.Decode(body, out); err != nil {
			return err
		}
		if out.IID != iid {
			return fmt.Errorf("it is about #%d", out.IID)
		}
		return nil
	}
}

// below is what it means that something of an issue is not there: that there is no such issue only when the issue itself
// is not there.
func (t *Tracker) below(ctx context.Context, key string, err error) error {
	if !forge.Missing(err) {
		return err
	}
	if _, look := t.read(ctx, key); look != nil {
		return look
	}
	return err
}

func notFound(key string) error { return fmt.Errorf("%w: %q", tracker.ErrNotFound, key) }

// gone makes ErrNotFound of answers that say there is no such issue.
func gone(key string, err error) error {
	if forge.Missing(err) {
		return fmt.Errorf("%w: %q: %w", tracker.ErrNotFound, key, err)
	}
	return err
}

// numberOf reads a key; only one spelling of a number is one.
func numberOf(key string) (int, bool) {
	n, err := strconv.ParseInt(key, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == key
}

func (t *Tracker) convert(i issue) tracker.Issue {
	key := strconv.Itoa(i.IID)
	out := tracker.Issue{
		Key: key, ID: "#" + key, Title: i.Title, Body: i.Body, URL: i.WebURL, Author: i.Author.name(), Labels: i.Labels,
		Open: i.State == "opened", Created: i.Created, Updated: i.Updated, Priority: priority(i.Labels, t.cfg.Priorities),
	}
	if out.Priority == 0 && t.cfg.ByWeight && i.Weight > 0 {
		out.Priority = i.Weight
	}
	return out
}
