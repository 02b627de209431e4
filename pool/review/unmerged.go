package review

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Open returns the finished work that nobody has merged, by issue key, with its place: ralph's requests on a forge or, without
// requests, branches. The names of the branches begin with the prefix; tips has the tips of known branches. elsewhere has the
// tips of work that another clone has finished and this backlog does not show; Open adds them to tips.
func (b Backlog) Open(ctx context.Context, base worktree.Base, prefix string, tips, elsewhere map[string]string, requests bool) (map[string]string, error) {
	out := map[string]string{}
	if lister, ok := tracker.As[tracker.RequestLister](b.Tracker); ok && requests {
		list, err := lister.Requests(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("list requests: %w", err)
		}
		for key, r := range list {
			out[key] = r.URL
		}
		return out, nil
	}
	others := slices.Sorted(maps.Keys(elsewhere))
	if len(others) > 0 {
		names := make([]string, len(others))
		for i, key := range others {
			names[i] = elsewhere[key]
		}
		here, err := b.Repo.Git().IDs(ctx, names)
		if err != nil {
			return nil, fmt.Errorf("look for branches of other clones: %w", err)
		}
		for i, key := range others {
			if tips[key] = here[i]; here[i] != "" {
				continue
			}
			there, err := b.Repo.RemoteTips(ctx, prefix+key) // it was never fetched
			if err != nil {
				return nil, fmt.Errorf("look for %s: %w", prefix+key, err)
			}
			tips[key] = there[prefix+key]
		}
	}
	keys, err := b.Unmerged(ctx, base, tips, others...)
	if err == nil {
		keys, err = b.undeleted(ctx, prefix, keys)
	}
	for _, key := range keys {
		out[key] = prefix + key
	}
	return out, err
}

// undeleted leaves out work whose branch was on the remote and has been removed there: a person has decided. Work that this clone
// has not pushed stays.
func (b Backlog) undeleted(ctx context.Context, prefix string, keys []string) ([]string, error) {
	if b.Repo.Remote() == "" || len(keys) == 0 {
		return keys, nil
	}
	there, err := b.Repo.RemoteBranches(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("look for branches on %s: %w", b.Repo.Remote(), err)
	}
	last, err := b.Store.Find(ctx, journal.Query{Pool: b.Pool, Keys: keys, Kind: journal.KindIssue, Latest: true})
	if err != nil {
		return nil, err
	}
	here := map[string]bool{}
	for _, r := range last {
		here[r.Key] = !r.Elsewhere && r.Published == ""
	}
	return slices.DeleteFunc(keys, func(key string) bool { return there[git.Heads+prefix+key] == "" && !here[key] }), nil
}

// Unmerged returns the keys of open issues in review, and those of more, whose branches have commits that the base lacks. tips
// has the tips of the branches by key.
func (b Backlog) Unmerged(ctx context.Context, base worktree.Base, tips map[string]string, more ...string) ([]string, error) {
	if len(tips) == 0 {
		return nil, nil
	}
	label := b.Labels.InReview
	list, err := b.Tracker.List(ctx, tracker.Query{Labels: []string{label}, Unworked: []string{label}})
	if err != nil {
		return nil, fmt.Errorf("list issues in review: %w", err)
	}
	var keys, look []string
	for _, i := range list.Issues {
		if tips[i.Key] != "" && i.Open && i.HasLabel(label) && !i.HasLabel(b.PickUp) {
			keys, look = append(keys, i.Key), append(look, tips[i.Key])
		}
	}
	for _, key := range more {
		if tips[key] != "" {
			keys, look = append(keys, key), append(look, tips[key])
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	has, err := span.Absorbed(ctx, b.Repo.Git(), base.Commit, look)
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", base.Name, err)
	}
	var open []string
	for n, key := range keys {
		if !has[look[n]] {
			open = append(open, key)
		}
	}
	return open, nil
}
