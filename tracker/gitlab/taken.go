package gitlab

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// ours reports a merge request of ralph's. The account alone does not tell: a person may have lent it.
func (t *Tracker) ours(m merge, self user) bool {
	return m.Author.id() == self.ID && m.own() && strings.HasPrefix(m.Source, t.cfg.BranchPrefix)
}

// takenBy says which open merge request of somebody else closes the issue; empty when none does.
func (t *Tracker) takenBy(ctx context.Context, i issue) (string, error) {
	if i.Merges == 0 {
		return "", nil
	}
	self, err := t.identity(ctx)
	if err != nil {
		return "", err
	}
	requests, err := pages[merge](ctx, t, t.project("/issues/%d/closed_by", i.IID), nil)
	if err != nil {
		return "", err
	}
	for _, m := range requests {
		if m.State == "opened" && !t.ours(m, self) {
			return fmt.Sprintf("merge request !%d by %s closes it", m.IID, m.Author.name()), nil
		}
	}
	return "", nil
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
			others = others || !t.ours(m, self)
		}
		return !others
	})
	if err != nil || !others {
		return nil, err
	}
	out := map[int]string{}
	var mu sync.Mutex
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(parallelReads)
	for _, i := range candidates {
		reads.Go(func() error {
			why, err := t.takenBy(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			out[i.IID] = why
			return err
		})
	}
	return out, reads.Wait()
}
