package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// Feedback is for a prompt; GitLab keeps the rest.
const (
	maxFeedback = 32 << 10 // bytes in all
	maxPart     = 8 << 10  // bytes of one log or note
)

// FollowUps lists ralph's own open requests that need another run, oldest first. A request has one follow-up: a conflict
// counts first, then what a person asks for, then checks; its feedback has all of them. A conflict that GitLab has not
// worked out yet is none.
func (t *Tracker) FollowUps(ctx context.Context, prefix string) ([]tracker.FollowUp, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	query := url.Values{
		"state": {"opened"}, "scope": {"all"}, "author_id": {strconv.Itoa(self.ID)}, "order_by": {"created_at"}, "sort": {"asc"},
	}
	all, err := pages[merge](ctx, t, t.project("/merge_requests"), query)
	if err != nil {
		return nil, err
	}
	var out []tracker.FollowUp
	seen := map[int]bool{}
	judges := t.court()
	for _, m := range all {
		key, ours := strings.CutPrefix(m.Source, prefix)
		if !ours || key == "" || seen[m.IID] || m.Author.id() != self.ID || !m.own() {
			continue
		}
		seen[m.IID] = true
		f, err := t.followUp(ctx, judges, m.IID)
		if err != nil {
			return nil, fmt.Errorf("look at merge request !%d: %w", m.IID, err)
		}
		if f != nil {
			f.Key = key
			out = append(out, *f)
		}
	}
	return out, nil
}

// followUp looks at one request; nil when it needs nothing.
func (t *Tracker) followUp(ctx context.Context, judges *court, iid int) (*tracker.FollowUp, error) {
	m, err := one[merge](ctx, t, http.MethodGet, t.project("/merge_requests/%d", iid), nil)
	if err != nil {
		return nil, err
	}
	if m.State != "opened" {
		return nil, nil
	}
	f := tracker.FollowUp{Request: ref(m), Head: m.Source, Commit: m.SHA}
	var said []string
	note := func(reason tracker.FollowUpReason, feedback string, at time.Time) {
		if f.Reason == "" {
			f.Reason = reason
		}
		if at.After(f.At) {
			f.At = at
		}
		said = append(said, feedback)
	}
	if m.Conflicts || m.Status == "conflict" {
		note(tracker.Conflict, fmt.Sprintf("The branch conflicts with %s.", m.Target), m.Updated)
	}
	asked, at, err := t.asked(ctx, judges, m)
	if err != nil {
		return nil, err
	}
	if asked != "" {
		note(tracker.ChangesRequested, asked, at)
	}
	if p := m.HeadPipeline; p != nil && p.Status == "failed" {
		log, err := t.failures(ctx, *p)
		if err != nil {
			return nil, err
		}
		note(tracker.ChecksFailed, log, p.Updated)
	}
	if f.Reason == "" {
		return nil, nil
	}
	f.Feedback = cut(strings.Join(said, "\n\n"), maxFeedback)
	return &f, nil
}

// asked collects what trusted people said since the head commit was pushed: open discussions that can be resolved, and
// what else they said when a reviewer formally requests changes. The time of the push is GitLab's, not the commit's,
// which the agent could choose.
func (t *Tracker) asked(ctx context.Context, judges *court, m merge) (string, time.Time, error) {
	var last time.Time
	pushed, err := t.pushed(ctx, m)
	if err != nil {
		return "", last, err
	}
	threads, err := pages[discussion](ctx, t, t.project("/merge_requests/%d/discussions", m.IID), nil)
	if err != nil {
		return "", last, err
	}
	formal := m.Status == "requested_changes"
	var open []note
	for _, d := range threads {
		for _, n := range d.Notes {
			wanted := n.Resolvable && !n.Resolved || !n.Resolvable && formal
			if n.System || n.Internal || n.Secret || !wanted || !n.Created.After(pushed) {
				continue
			}
			open = append(open, n)
		}
	}
	newest := slices.SortedStableFunc(slices.Values(open), func(a, b note) int { return b.Created.Compare(a.Created) })
	var people []*user
	for _, n := range newest {
		people = append(people, n.Author)
	}
	trusted, err := judges.trusted(ctx, people)
	if err != nil {
		return "", last, err
	}
	var said []string
	for _, n := range open {
		if !trusted[n.Author.id()] {
			continue
		}
		said = append(said, quoted(n))
		if n.Created.After(last) {
			last = n.Created
		}
	}
	return strings.Join(said, "\n\n"), last, nil
}

func quoted(n note) string {
	where := ""
	if p := n.Position; p != nil && p.Path != "" {
		where = fmt.Sprintf(" on %s:%d", p.Path, p.Line)
	}
	return fmt.Sprintf("%s%s says:\n%s", n.Author.name(), where, cut(n.Body, maxPart))
}

// pushed is when the head commit of the request arrived.
func (t *Tracker) pushed(ctx context.Context, m merge) (time.Time, error) {
	versions, err := pages[diffVersion](ctx, t, t.project("/merge_requests/%d/versions", m.IID), nil)
	if err != nil {
		return time.Time{}, err
	}
	var at time.Time
	for _, v := range versions {
		if v.Head == m.SHA && v.Created.After(at) {
			at = v.Created
		}
	}
	return at, nil
}
