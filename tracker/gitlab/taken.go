package gitlab

import (
	"context"
	"slices"

	gl "github.com/xanzy/go-gitlab"

	"github.com/ralph-pool/ralph/internal/fanout"
	"github.com/ralph-pool/ralph/tracker/forge"
)

// lookUpTaken returns, for each of the issues, the open merge request that closes it.
func (t *Tracker) lookUpTaken(ctx context.Context, issues []*issue) (map[int]string, error) {
	lists, err := fanout.Map(ctx, issues, func(ctx context.Context, i *issue) ([]forge.Closing, error) {
		closing, err := allRequests(ctx, func(o ...gl.RequestOptionFunc) ([]*gl.MergeRequest, *gl.Response, error) {
			return t.api.Issues.ListMergeRequestsClosingIssue(t.project.Path, i.IID, nil, o...)
		})
		var out []forge.Closing
		for _, r := range closing {
			assigned := slices.ContainsFunc(i.Assignees, func(u *gl.BasicUser) bool { return account(u).ID == r.Author.ID })
			out = append(out, forge.Closing{Request: r, Issue: i.IID, Assigned: assigned})
		}
		return out, err
	})
	if err != nil {
		return nil, err
	}
	return t.Taken(ctx, slices.Concat(lists...))
}

// takenIssues reports which of the issues are taken. It looks at each issue only if some person has an open request.
func (t *Tracker) takenIssues(ctx context.Context, issues []*issue) (map[int]string, error) {
	candidates := slices.DeleteFunc(slices.Clone(issues), func(i *issue) bool { return i.Merges == 0 })
	if len(candidates) == 0 {
		return nil, nil
	}
	self, err := t.Identity(ctx)
	if err != nil {
		return nil, err
	}
	others := false
	err = eachPage(ctx, completeMerge, t.mergePages(forge.RequestQuery{}), func(some []*gl.MergeRequest) bool {
		others = slices.ContainsFunc(requestsOf(some), func(r forge.Request) bool { return t.CountsAsTaken(r, self) })
		return !others
	})
	if err != nil || !others {
		return nil, err
	}
	return t.lookUpTaken(ctx, candidates)
}
