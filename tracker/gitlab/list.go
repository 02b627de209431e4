package gitlab

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// List returns the open issues with the labels, oldest first, without comments. GitLab filters by label. It costs one request
// for each page of 100 issues, one for the label's spelling, and one for each listed issue that blocks others or has a
// person's merge request; unchanged pages come from the cache. An issue that cannot be decoded is a Problem.
//
// GitLab shows blocking links only on the blocker. So List finds linked blockers only if they are in the listing; Get also
// finds those that are not listed, are closed, or are in another project.
func (t *Tracker) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	raw, err := t.listRaw(ctx, q.Labels)
	if err != nil {
		return tracker.Listing{}, t.Listed(ctx, err)
	}
	var l tracker.Listing
	open := map[int]*issue{}
	for n, text := range raw {
		i, err := transport.Decode(*text, completeIssue)
		if err != nil {
			where := fmt.Sprintf("%s, issue %d of the listing", t.project, n+1)
			l.Problems = append(l.Problems, tracker.Problem{Where: where, Err: fmt.Errorf("read the issue: %w", err)})
			continue
		}
		open[i.IID] = i // an issue that moves to another page between two reads is read twice
	}
	chosen := t.matchingIssues(open, q)
	taken, err := t.takenIssues(ctx, chosen)
	if err != nil {
		return tracker.Listing{}, err
	}
	worked := slices.DeleteFunc(slices.Clone(chosen), func(i *issue) bool { return !q.NeedsBlockers(i.Labels) })
	blocks, err := t.blockersOf(ctx, open, worked)
	if err != nil {
		return tracker.Listing{}, err
	}
	seen, err := t.exposesConfidential(ctx, chosen...)
	if err != nil {
		return tracker.Listing{}, err
	}
	for _, i := range chosen {
		out := t.convert(i)
		out.BlockedBy, out.Taken, out.Confidential = blocks[i.IID], taken[i.IID], i.Confidential && seen
		l.Issues = append(l.Issues, out)
	}
	return l, nil
}

// listRaw reads the open issues that carry the first of the labels. GitLab's labels are case-sensitive, so each spelling needs
// a listing of its own. The issues are not decoded yet, so that an invalid one does not hide the others.
func (t *Tracker) listRaw(ctx context.Context, labels []string) ([]*json.RawMessage, error) {
	opts := gl.ListProjectIssuesOptions{State: gl.Ptr("opened"), OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("asc")}
	opts.Pagination = "keyset"
	if labels = tracker.MissingNames(nil, labels); len(labels) == 0 {
		return t.rawIssues(ctx, opts)
	}
	spellings, err := t.spellingsOf(ctx, labels[0])
	if err != nil {
		return nil, err
	}
	var list []*json.RawMessage
	for _, s := range spellings {
		opts.Labels = &gl.LabelOptions{s}
		some, err := t.rawIssues(ctx, opts)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// rawIssues reads a whole list of issues without decoding them.
func (t *Tracker) rawIssues(ctx context.Context, opts gl.ListProjectIssuesOptions) ([]*json.RawMessage, error) {
	return listAll(ctx, nil, func(o ...gl.RequestOptionFunc) ([]*json.RawMessage, *gl.Response, error) {
		var list transport.RawList
		resp, err := t.do(http.MethodGet, "/issues", opts, &list, o)
		return list.Items(), resp, err
	})
}

// matchingIssues returns the issues that match the query and the settings, in a stable order.
func (t *Tracker) matchingIssues(open map[int]*issue, q tracker.Query) []*issue {
	var chosen []*issue
	for _, i := range open {
		// Incidents, tasks and the like are work for ralph only if somebody has labelled them.
		workable := i.Type == "" || i.Type == "issue" || len(i.Labels) > 0
		if i.State == "opened" && workable && t.matchesSettings(i) && len(tracker.MissingNames(i.Labels, q.Labels)) == 0 {
			chosen = append(chosen, i)
		}
	}
	slices.SortFunc(chosen, func(a, b *issue) int { return cmp.Or(a.Created.Compare(b.Created), a.IID-b.IID) })
	return chosen
}

// matchesSettings applies the filters of the settings.
func (t *Tracker) matchesSettings(i *issue) bool {
	a := t.Settings.Assignee
	mine := slices.ContainsFunc(i.Assignees, func(u *gl.BasicUser) bool { return strings.EqualFold(account(u).Name, a) })
	return (a == "" || mine) && t.MatchesFilters(account(i.Author).Name, i.Milestone.Title)
}

// Get reads one issue with its comments, its blockers and the request that takes it.
func (t *Tracker) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := t.getIssue(ctx, key)
	if err != nil {
		return tracker.Issue{}, err
	}
	out := t.convert(i)
	if out.Confidential, err = t.exposesConfidential(ctx, i); err != nil {
		return tracker.Issue{}, err
	}
	if out.BlockedBy, err = t.blockers(ctx, i); err != nil {
		return tracker.Issue{}, err
	}
	if i.Merges > 0 {
		taken, err := t.lookUpTaken(ctx, []*issue{i})
		if err != nil {
			return tracker.Issue{}, err
		}
		out.Taken = taken[i.IID]
	}
	out.Comments, err = t.Comments(ctx, i.IID)
	return out, t.ExplainPart(ctx, key, err)
}

// exposesConfidential reports whether one of the issues is confidential and people who may not read it can see the resulting code. In a
// private project everybody who may read the code may also read all issues.
func (t *Tracker) exposesConfidential(ctx context.Context, issues ...*issue) (bool, error) {
	if !slices.ContainsFunc(issues, func(i *issue) bool { return i.Confidential }) {
		return false, nil
	}
	p, err := t.readProject(ctx)
	return err == nil && p.Visibility != gl.PrivateVisibility, err
}

// getIssue reads the issue itself, or returns ErrNotFound.
func (t *Tracker) getIssue(ctx context.Context, key string) (*issue, error) {
	iid, ok := forge.Number(key)
	if !ok {
		return nil, forge.NotFound(key)
	}
	var i *issue
	err := t.Stack.RetryNotFound(ctx, func(ctx context.Context) (err error) {
		i, err = t.issue(ctx, http.MethodGet, iid, nil)
		return err
	})
	if err != nil {
		return nil, t.ExplainMissing(ctx, key, err)
	}
	return i, nil
}

// issue makes a request whose answer is the issue.
func (t *Tracker) issue(ctx context.Context, method string, iid int, opts any) (*issue, error) {
	about := func(i *issue) bool { return completeIssue(i) && i.IID == iid }
	return getOne(ctx, about, func(o ...gl.RequestOptionFunc) (*issue, *gl.Response, error) {
		v := new(issue)
		resp, err := t.do(method, fmt.Sprintf("/issues/%d", iid), opts, v, o)
		return v, resp, err
	})
}

func (t *Tracker) convert(i *issue) tracker.Issue {
	key := strconv.Itoa(i.IID)
	return tracker.Issue{
		Key: key, ID: "#" + key, Title: i.Title, Body: i.Body, URL: i.WebURL, Author: account(i.Author).Name, Labels: i.Labels,
		Open: i.State == "opened", Created: i.Created, Updated: i.Updated, Priority: tracker.PriorityOf(i.Labels, t.Settings.Priorities),
	}
}
