package github

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// taking is an open pull request that says it closes an issue.
type taking struct {
	issue int
	pull  int
	by    *user
}

// takenBy says for each of the issues that an open pull request closes, which one. That of somebody who may direct ralph
// counts, and that of somebody who is assigned to the issue: else anybody could keep ralph from everything. Bots and ralph
// itself do not take issues.
func (t *Tracker) takenBy(ctx context.Context, issues []issue) (map[int]string, error) {
	all, err := t.takings(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	wanted := map[int]issue{}
	for _, i := range issues {
		wanted[i.Number] = i
	}
	all = slices.DeleteFunc(all, func(g taking) bool { return wanted[g.issue].Number == 0 })
	assigned := func(g taking) bool {
		return slices.ContainsFunc(wanted[g.issue].Assignees, func(u user) bool { return u.ID == g.by.ID })
	}
	var people []*user
	for _, g := range slices.Backward(all) {
		if !assigned(g) {
			people = append(people, g.by)
		}
	}
	trusted, err := t.trusted(ctx, people)
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, g := range all {
		if taken[g.issue] == "" && (assigned(g) || trusted[g.by.ID]) {
			taken[g.issue] = fmt.Sprintf("pull request #%d of %s closes it", g.pull, g.by.Login)
		}
	}
	return taken, nil
}

// takings reads the open pull requests of people, oldest first, for the issues that they close.
func (t *Tracker) takings(ctx context.Context) ([]taking, error) {
	pulls, err := t.openPulls(ctx)
	if err != nil {
		return nil, err
	}
	var all []taking
	for _, p := range pulls {
		if p.User == nil || p.User.ID == 0 || p.User.Type == "Bot" {
			continue
		}
		closed := closedBy(p.Title+"\n"+p.Body, t.cfg.Project.Host, t.cfg.Project.String())
		if len(closed) == 0 {
			continue
		}
		// Ralph may run with a person's own token; then its branches tell what is its own.
		me, err := t.identity(ctx)
		if err != nil {
			return nil, err
		}
		if p.User.ID == me.ID && strings.HasPrefix(p.Head.Ref, t.cfg.BranchPrefix) {
			continue
		}
		for _, r := range closed {
			if r.project == "" {
				all = append(all, taking{r.number, p.Number, p.User})
			}
		}
	}
	return all, nil
}

func (t *Tracker) openPulls(ctx context.Context) ([]pull, error) {
	return pages[pull](ctx, t, t.repo("/pulls"), url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}})
}
