package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Auto-merge and merge queues exist only in the GraphQL API.
const (
	mergingQuery = `query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){autoMergeAllowed ` +
		`mergeCommitAllowed squashMergeAllowed rebaseMergeAllowed pullRequest(number:$number){id isDraft headRefOid baseRefName ` +
		`reviewDecision autoMergeRequest{enabledAt} mergeQueue{id} mergeQueueEntry{id} reviewThreads(last:100){nodes{isResolved}}}}}`
	mergeMutation = `mutation($id:ID!,$head:GitObjectID!,$method:PullRequestMergeMethod){enablePullRequestAutoMerge(input:` +
		`{pullRequestId:$id,expectedHeadOid:$head,mergeMethod:$method}){pullRequest{id}}}`
	enqueueMutation     = `mutation($id:ID!,$head:GitObjectID!){enqueuePullRequest(input:{pullRequestId:$id,expectedHeadOid:$head}){mergeQueueEntry{id}}}`
	disableAutoMutation = `mutation($id:ID!){disablePullRequestAutoMerge(input:{pullRequestId:$id}){pullRequest{id}}}`
	dequeueMutation     = `mutation($id:ID!){dequeuePullRequest(input:{id:$id}){mergeQueueEntry{id}}}`
)

// mergeState is the state that decides whether GitHub may merge a pull request by itself.
type mergeState struct {
	Allowed bool `json:"autoMergeAllowed"` // the repository allows auto-merge
	Merge   bool `json:"mergeCommitAllowed"`
	Squash  bool `json:"squashMergeAllowed"`
	Rebase  bool `json:"rebaseMergeAllowed"`
	Pull    *struct {
		ID       string    `json:"id"`
		Draft    bool      `json:"isDraft"`
		Head     string    `json:"headRefOid"`
		Base     string    `json:"baseRefName"`
		Decision string    `json:"reviewDecision"`
		Auto     *struct{} `json:"autoMergeRequest"` // nil: auto-merge is off
		Queue    *struct{} `json:"mergeQueue"`       // the base's queue; nil: none
		Entry    *struct{} `json:"mergeQueueEntry"`  // the request's entry in the queue; nil: none
		Threads  struct {
			Nodes []struct {
				Resolved bool `json:"isResolved"`
			} `json:"nodes"`
		} `json:"reviewThreads"`
	} `json:"pullRequest"`
}

// method returns a merge method that the repository allows. A queue has its own method.
func (m *mergeState) method() any {
	switch {
	case m.Pull.Queue != nil:
		return nil
	case m.Merge:
		return "MERGE"
	case m.Squash:
		return "SQUASH"
	}
	return "REBASE"
}

// MergeLater enables auto-merge or adds the request to the base's merge queue, or returns why that is not possible.
func (g Graph) MergeLater(ctx context.Context, number int, commit string) (refused string, err error) {
	m, err := g.mergeState(ctx, number)
	switch {
	case err != nil:
		return "", err
	case m.Pull.Head != commit:
		return "the request's head is not the commit that was checked", nil
	}
	if why := m.blockedReason(); why != "" {
		return why, g.cancelMerge(ctx, m)
	}
	if m.Pull.Auto != nil || m.Pull.Entry != nil {
		return "", nil
	}
	if !m.Allowed && m.Pull.Queue == nil {
		return fmt.Sprintf(`auto-merge is off in %s/%s: turn on "Allow auto-merge" in the repository's settings`, g.Owner, g.Name), nil
	}
	variables := map[string]any{"id": m.Pull.ID, "head": commit, "method": m.method()}
	err = g.mutate(transport.WithIdempotent(ctx), mergeMutation, variables)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "clean status") { // all requirements are met already
		if m.Pull.Queue == nil {
			return fmt.Sprintf("GitHub has nothing to wait for: make a check required on %s, by a ruleset or branch protection",
				m.Pull.Base), nil
		}
		delete(variables, "method")
		err = g.mutate(transport.WithIdempotent(ctx), enqueueMutation, variables)
	}
	if _, away := errors.AsType[*tracker.UnavailableError](err); err == nil || away {
		return "", err
	}
	return fmt.Sprintf("%s; it needs required checks on %s, and a token that may write contents and pull requests",
		tracker.Line(err.Error(), 300), m.Pull.Base), nil
}

// blockedReason returns why the request must not be merged automatically; empty: it may.
func (m *mergeState) blockedReason() string {
	switch {
	case m.Pull.Draft:
		return "it is a draft"
	case m.Pull.Decision == "CHANGES_REQUESTED":
		return "a review requests changes"
	}
	for _, thread := range m.Pull.Threads.Nodes {
		if !thread.Resolved {
			return "a review comment is not resolved"
		}
	}
	return ""
}

// KeepOpen undoes MergeLater.
func (g Graph) KeepOpen(ctx context.Context, number int) error {
	m, err := g.mergeState(ctx, number)
	if err != nil {
		return err
	}
	return g.cancelMerge(ctx, m)
}

// mergeState reads the state of a pull request.
func (g Graph) mergeState(ctx context.Context, number int) (*mergeState, error) {
	type answer struct {
		Repository *mergeState `json:"repository"`
	}
	complete := func(a *answer) bool {
		return a.Repository != nil && a.Repository.Pull != nil && a.Repository.Pull.ID != "" && a.Repository.Pull.Head != ""
	}
	a, err := Query(transport.WithReadOnly(ctx), g, mergingQuery, map[string]any{"owner": g.Owner, "name": g.Name, "number": number}, complete)
	if err != nil {
		return nil, err
	}
	return a.Repository, nil
}

func (g Graph) cancelMerge(ctx context.Context, m *mergeState) error {
	if m.Pull.Auto != nil {
		if err := g.mutate(transport.WithIdempotent(ctx), disableAutoMutation, map[string]any{"id": m.Pull.ID}); err != nil {
			return err
		}
	}
	if m.Pull.Entry == nil {
		return nil
	}
	return g.mutate(transport.WithIdempotent(ctx), dequeueMutation, map[string]any{"id": m.Pull.ID})
}

// mutate runs one mutation. It succeeds only if the answer has a value under the mutation's name.
func (g Graph) mutate(ctx context.Context, text string, variables map[string]any) error {
	_, err := Query(ctx, g, text, variables, func(made *map[string]*struct{}) bool {
		for _, v := range *made {
			if v == nil {
				return false
			}
		}
		return len(*made) == 1
	})
	return err
}
