package gitlab

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// ours reports a merge request of ralph's. The account alone does not tell: a person may have lent it.
func (t *Tracker) ours(m merge, self user) bool {
	return m.Author.id() == self.ID && m.own() && strings.HasPrefix(m.Source, t.cfg.BranchPrefix)
}

// takes reports whether a merge request may take an issue at all. Those of bots and ralph's own do not.
func (t *Tracker) takes(m merge, self user) bool {
	return m.State == "opened" && m.Author.id() > 0 && !slices.Contains(t.cfg.TrustedBots, m.Author.id()) && !t.ours(m, self)
}

// takenBy says which open merge request of somebody else closes the issue; empty when none does.
func (t *Tracker) takenBy(ctx context.Context, i issue) (string, error) {
	if i.Merges == 0 {
		return "", nil
	}
	requests, err := t.closing(ctx, i)
	if err != nil {
		return "", err
	}
	taken, err := t.decide(ctx, []issue{i}, map[int][]merge{i.IID: requests})
	return taken[i.IID], err
}

// closing reads the open merge requests of others that close an issue.
func (t *Tracker) closing(ctx context.Context, i issue) ([]merge, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := pages[merge](ctx, t, t.project("/issues/%d/closed_by", i.IID), nil)
	return slices.DeleteFunc(requests, func(m merge) bool { return !t.takes(m, self) }), err
}

// decide says for each issue which of its requests takes it. That of somebody who may direct ralph counts, and that of
// somebody who is assigned to the issue: else anybody could keep ralph from everything.
func (t *Tracker) decide(ctx context.Context, issues []issue, requests map[int][]merge) (map[int]string, error) {
	assigned := func(i issue, m merge) bool {
		return slices.ContainsFunc(i.Assignees, func(u user) bool { return u.ID == m.Author.id() })
	}
	var asked []merge
	for _, i := range issues {
		for _, m := range requests[i.IID] {
			if !assigned(i, m) {
				asked = append(asked, m)
			}
		}
	}
	slices.SortStableFunc(asked, func(a, b merge) int { return b.IID - a.IID })
	var people []*user
	for _, m := range asked {
		people = append(people, m.Author)
	}
	trusted, err := t.court().trusted(ctx, people)
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, i := range issues {
		for _, m := range requests[i.IID] {
			if assigned(i, m) || trusted[m.Author.id()] {
				taken[i.IID] = fmt.Sprintf("merge request !%d by %s closes it", m.IID, m.Author.name())
				break
			}
		}
	}
	return taken, nil
}

// takenAmong is takenBy for many issues. It asks for one of them only when somebody else has an open request at all.
func (t *Tracker) takenAmong(ctx context.Context, issues []issue) (map[int]string, error) {
	var candidates []issue
	for _, i := range issues {
		if i.Merges > 0 {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	others := false
	err = eachPage(ctx, t, t.project("/merge_requests"), url.Values{"state": {"opened"}, "scope": {"all"}}, func(some []merge) bool {
		for _, m := range some {
			others = others || t.takes(m, self)
		}
		return !others
	})
	if err != nil || !others {
		return nil, err
	}
	requests := map[int][]merge{}
	var mu sync.Mutex
	reads, groupCtx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for _, i := range candidates {
		reads.Go(func() error {
			some, err := t.closing(groupCtx, i)
			mu.Lock()
			defer mu.Unlock()
			requests[i.IID] = some
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	return t.decide(ctx, candidates, requests)
}
