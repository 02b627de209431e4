package github

import (
	"context"
	"fmt"
	"slices"
	"strings"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

// taking is an open pull request that says it closes an issue.
type taking struct {
	issue *issue
	pull  int
	by    forge.Account
}

// assigned reports whether its author is assigned to the issue.
func (g taking) assigned() bool {
	return slices.ContainsFunc(g.issue.Assignees, func(u *gh.User) bool { return u.GetID() == g.by.ID })
}

// takenBy says which open pull request closes each of the issues. Only requests of accounts that may direct ralph, or
// that are assigned to the issue, count: otherwise anybody could keep ralph from everything. Bots and ralph itself do
// not take issues.
func (t *Tracker) takenBy(ctx context.Context, issues []*issue) (map[int]string, error) {
	list, err := t.takings(ctx, issues)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	var people []forge.Account
	for _, g := range slices.Backward(list) {
		if !g.assigned() {
			people = append(people, g.by)
		}
	}
	trusted, err := t.people.Trusted(ctx, people)
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, g := range list {
		if n := g.issue.GetNumber(); taken[n] == "" && (g.assigned() || trusted[g.by.ID]) {
			taken[n] = fmt.Sprintf("pull request #%d of %s closes it", g.pull, g.by.Name)
		}
	}
	return taken, nil
}

// takings are the open pull requests of people that close one of the issues, oldest first.
func (t *Tracker) takings(ctx context.Context, issues []*issue) ([]taking, error) {
	wanted := map[int]*issue{}
	for _, i := range issues {
		wanted[i.GetNumber()] = i
	}
	pulls, err := t.pulls(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []taking
	for _, p := range pulls {
		by := account(p.User)
		if by.ID == 0 || p.GetUser().GetType() == "Bot" {
			continue
		}
		for _, r := range closedBy(p.GetTitle()+"\n"+p.GetBody(), t.project.Host, t.project.String()) {
			if i := wanted[r.number]; i != nil && r.project == "" {
				list = append(list, taking{i, p.GetNumber(), by})
			}
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	me, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	// Ralph may run with a person's own token; then its branches tell which requests are its own.
	own := map[int]bool{}
	for _, p := range pulls {
		own[p.GetNumber()] = account(p.User).ID == me.ID && strings.HasPrefix(p.GetHead().GetRef(), t.cfg.BranchPrefix)
	}
	return slices.DeleteFunc(list, func(g taking) bool { return own[g.pull] }), nil
}

// pulls lists the open pull requests, oldest first; head is OWNER:BRANCH, empty for all.
func (t *Tracker) pulls(ctx context.Context, head string) ([]*gh.PullRequest, error) {
	return api.All(ctx, completePull, func(ctx context.Context, p gh.ListOptions) ([]*gh.PullRequest, *gh.Response, error) {
		opts := &gh.PullRequestListOptions{State: "open", Head: head, Sort: "created", Direction: "asc", ListOptions: p}
		return t.api.PullRequests.List(ctx, t.project.Owner, t.project.Name, opts)
	})
}
