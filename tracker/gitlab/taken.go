package gitlab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	gl "github.com/xanzy/go-gitlab"
	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// own reports that a request comes from the project itself, not from a fork.
func own(m *gl.MergeRequest) bool { return m.SourceProjectID == m.TargetProjectID }

// takes reports whether a merge request may take an issue at all. Those of bots and ralph's own do not. The account
// alone does not tell ralph's own: a person may have lent it.
func (t *Tracker) takes(m *gl.MergeRequest, self *gl.User) bool {
	by := account(m.Author).ID
	ralphs := by == int64(self.ID) && own(m) && strings.HasPrefix(m.SourceBranch, t.cfg.BranchPrefix)
	return m.State == "opened" && by > 0 && !slices.Contains(t.cfg.TrustedBots, by) && !ralphs
}

// closing reads the open merge requests of others that close an issue.
func (t *Tracker) closing(ctx context.Context, i *issue) ([]*gl.MergeRequest, error) {
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := all(ctx, completeMerge, func(o ...gl.RequestOptionFunc) ([]*gl.MergeRequest, *gl.Response, error) {
		return t.api.Issues.ListMergeRequestsClosingIssue(t.project.Path, i.IID, nil, o...)
	})
	return slices.DeleteFunc(requests, func(m *gl.MergeRequest) bool { return !t.takes(m, self) }), err
}

// decide says which request takes each issue. Only requests of accounts that may direct ralph, or that are assigned to
// the issue, count: otherwise anybody could keep ralph from everything.
func (t *Tracker) decide(ctx context.Context, issues []*issue, requests map[int][]*gl.MergeRequest) (map[int]string, error) {
	assigned := func(i *issue, m *gl.MergeRequest) bool {
		return slices.ContainsFunc(i.Assignees, func(u *gl.BasicUser) bool { return account(u).ID == account(m.Author).ID })
	}
	var asked []*gl.MergeRequest
	for _, i := range issues {
		for _, m := range requests[i.IID] {
			if !assigned(i, m) {
				asked = append(asked, m)
			}
		}
	}
	slices.SortStableFunc(asked, func(a, b *gl.MergeRequest) int { return b.IID - a.IID })
	var people []forge.Account
	for _, m := range asked {
		people = append(people, account(m.Author))
	}
	trusted, err := t.people.Trusted(ctx, people)
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, i := range issues {
		for _, m := range requests[i.IID] {
			if by := account(m.Author); assigned(i, m) || trusted[by.ID] {
				taken[i.IID] = fmt.Sprintf("merge request !%d by %s closes it", m.IID, by.Name)
				break
			}
		}
	}
	return taken, nil
}

// takenAmong says which of the issues are taken. It asks about each only when somebody else has an open request at all.
func (t *Tracker) takenAmong(ctx context.Context, issues []*issue) (map[int]string, error) {
	candidates := slices.DeleteFunc(slices.Clone(issues), func(i *issue) bool { return i.Merges == 0 })
	if len(candidates) == 0 {
		return nil, nil
	}
	self, err := t.identity(ctx)
	if err != nil {
		return nil, err
	}
	others := false
	err = each(ctx, completeMerge, t.requests(gl.ListProjectMergeRequestsOptions{}), func(some []*gl.MergeRequest) bool {
		others = slices.ContainsFunc(some, func(m *gl.MergeRequest) bool { return t.takes(m, self) })
		return !others
	})
	if err != nil || !others {
		return nil, err
	}
	requests := map[int][]*gl.MergeRequest{}
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

// requests lists the project's open merge requests.
func (t *Tracker) requests(opts gl.ListProjectMergeRequestsOptions) pages[gl.MergeRequest] {
	opts.State, opts.Scope = gl.Ptr("opened"), gl.Ptr("all")
	return func(o ...gl.RequestOptionFunc) ([]*gl.MergeRequest, *gl.Response, error) {
		return t.api.MergeRequests.ListProjectMergeRequests(t.project.Path, &opts, o...)
	}
}
