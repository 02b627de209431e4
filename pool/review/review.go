// Package review finds work in review that a person has merged by hand. Sweeps of package pool use it, and so does the removal of
// old branches. It changes nothing, and its functions are safe for concurrent use.
package review

import (
	"context"
	"fmt"
	"slices"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Backlog is the backlog in review. All fields but Keys and PickUp are required.
type Backlog struct {
	Repo    *worktree.Repo
	Tracker tracker.Tracker
	Store   journal.Store
	Pool    string // namespace in the store
	Labels  tracker.StateLabels
	Claims  func(ctx context.Context) (map[string]worktree.ClaimState, error)
	Keys    []string // the only issues to look at; empty: all
	PickUp  string   // the pick-up label: a person has set it again to have more done
}

// Change returns the change of an issue whose work was merged by hand.
func (b Backlog) Change() tracker.Change {
	return tracker.Change{Close: true, RemoveLabels: []string{b.Labels.InReview, b.Labels.NeedsHuman, b.Labels.NeedsInfo}}
}

// Closed returns the issue as it will be once the merged ones are closed.
func Closed(i tracker.Issue, merged []tracker.Issue) tracker.Issue {
	is := func(key string) bool {
		return slices.ContainsFunc(merged, func(m tracker.Issue) bool { return m.Key == key })
	}
	i.Open = i.Open && !is(i.Key)
	i.BlockedBy = slices.Clone(i.BlockedBy)
	for n, b := range i.BlockedBy {
		i.BlockedBy[n].Open = b.Open && !is(b.Key)
	}
	return i
}

// Merged lists the open issues in review whose commits a person has merged into the base, according to this host's journal. It
// leaves out issues that are being worked.
func (b Backlog) Merged(ctx context.Context, base worktree.Base) ([]tracker.Issue, error) {
	left, err := b.candidates(ctx, base)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	claims, err := b.Claims(ctx)
	if err != nil {
		return nil, err
	}
	label := b.Labels.InReview
	list, err := b.Tracker.List(ctx, tracker.Query{Labels: []string{label}, Unworked: []string{label}})
	if err != nil {
		return nil, fmt.Errorf("list issues in review: %w", err)
	}
	open := slices.DeleteFunc(list.Issues, func(i tracker.Issue) bool {
		c, l := claims[i.Key], left[i.Key]
		return !l.branch.Merged || !i.Open || !i.HasLabel(label) || i.HasLabel(b.PickUp) || c.Err != nil || !c.Gone && c.Holder.Run != ""
	})
	var tips []string
	for _, i := range open {
		tips = append(tips, left[i.Key].tip)
	}
	if len(tips) == 0 {
		return nil, nil
	}
	// This includes rebased and squashed commits. A branch that was only reset to the base, or has more commits since, is not
	// merged.
	has, err := span.Absorbed(ctx, b.Repo.Git(), base.Commit, tips)
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", base.Name, err)
	}
	return slices.DeleteFunc(open, func(i tracker.Issue) bool { return !has[left[i.Key].tip] }), nil
}

// candidate is work that an issue's last run has left for review.
type candidate struct {
	tip    string // where the run left it
	branch worktree.Branch
}

// candidates returns by key the work that a person may have merged. The forge itself closes the issue of a merged request; ralph
// closes it only if the base has the request's own commits.
func (b Backlog) candidates(ctx context.Context, base worktree.Base) (map[string]candidate, error) {
	if tracker.IsReadOnly(b.Tracker) {
		return nil, nil
	}
	if some, err := b.Store.Find(ctx, journal.Query{Pool: b.Pool, Kind: journal.KindIssue, Limit: 1}); err != nil || len(some) == 0 {
		return nil, err
	}
	branches, err := b.Repo.Branches(ctx, base)
	var keys []string
	for _, branch := range branches {
		if len(b.Keys) == 0 || slices.Contains(b.Keys, branch.Key) {
			keys = append(keys, branch.Key)
		}
	}
	switch {
	case len(branches) == 0:
		return nil, err
	case len(keys) == 0: // and no branch is hidden by a worktree record that cannot be read
		return nil, nil
	}
	last, err := b.Store.Find(ctx, journal.Query{Pool: b.Pool, Keys: keys, Kind: journal.KindIssue, Latest: true})
	if err != nil {
		return nil, err
	}
	runs := map[string]journal.Record{}
	for _, r := range last {
		if r.Verdict.Outcome == journal.Succeeded && !r.Merges(r.Verdict) && r.Tip != "" && r.Base == base.Name {
			runs[r.Key] = r
		}
	}
	left := map[string]candidate{}
	for _, branch := range branches {
		if r := runs[branch.Key]; r.Tip != "" && (branch.Merged || r.Request.Number == 0) {
			left[branch.Key] = candidate{r.Tip, branch}
		}
	}
	return left, nil
}
