package github

import (
	"context"
	"slices"

	gh "github.com/google/go-github/v62/github"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// takenBy returns, for each of the issues, the open pull request that closes it.
func (t *Tracker) takenBy(ctx context.Context, issues []*issue) (map[int]string, error) {
	wanted := map[int]*issue{}
	for _, i := range issues {
		wanted[i.GetNumber()] = i
	}
	var list []forge.Closing
	err := t.eachPull(ctx, forge.RequestQuery{}, func(p *gh.PullRequest) {
		r := t.requestOf(p)
		for _, ref := range closedIssues(p.GetTitle()+"\n"+p.GetBody(), t.project.Host, t.project.String()) {
			if i := wanted[ref.number]; i != nil && ref.project == "" {
				assigned := slices.ContainsFunc(i.Assignees, func(u *gh.User) bool { return u.GetID() == r.Author.ID })
				list = append(list, forge.Closing{Request: r, Issue: ref.number, Assigned: assigned})
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return t.Taken(ctx, list)
}
