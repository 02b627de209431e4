package api

import "context"

// What GitHub merges by itself is in the GraphQL API only.
const (
	mergingQuery = `query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){autoMergeAllowed ` +
		`mergeCommitAllowed squashMergeAllowed rebaseMergeAllowed pullRequest(number:$number){id isDraft headRefOid baseRefName ` +
		`reviewDecision autoMergeRequest{enabledAt} mergeQueue{id} mergeQueueEntry{id} reviewThreads(last:100){nodes{isResolved}}}}}`
	mergeMutation = `mutation($id:ID!,$head:GitObjectID!,$method:PullRequestMergeMethod){enablePullRequestAutoMerge(input:` +
		`{pullRequestId:$id,expectedHeadOid:$head,mergeMethod:$method}){pullRequest{id}}}`
	enqueueMutation = `mutation($id:ID!,$head:GitObjectID!){enqueuePullRequest(input:{pullRequestId:$id,expectedHeadOid:$head}){mergeQueueEntry{id}}}`
	keepMutation    = `mutation($id:ID!){disablePullRequestAutoMerge(input:{pullRequestId:$id}){pullRequest{id}}}`
	dequeueMutation = `mutation($id:ID!){dequeuePullRequest(input:{id:$id}){mergeQueueEntry{id}}}`
)

// Merging is what decides whether GitHub merges a pull request by itself.
type Merging struct {
	Allowed bool `json:"autoMergeAllowed"` // in the repository
	Merge   bool `json:"mergeCommitAllowed"`
	Squash  bool `json:"squashMergeAllowed"`
	Rebase  bool `json:"rebaseMergeAllowed"`
	Pull    *struct {
		ID       string  `json:"id"`
		Draft    bool    `json:"isDraft"`
		Head     string  `json:"headRefOid"`
		Base     string  `json:"baseRefName"`
		Decision string  `json:"reviewDecision"`
		Auto     *object `json:"autoMergeRequest"` // nil: it does not, so far
		Queue    *object `json:"mergeQueue"`       // of the base; nil: it has none
		Entry    *object `json:"mergeQueueEntry"`  // of the request; nil: it is not in the queue
		Threads  struct {
			Nodes []struct {
				Resolved bool `json:"isResolved"`
			} `json:"nodes"`
		} `json:"reviewThreads"`
	} `json:"pullRequest"`
}

type object struct{}

// Method is how GitHub is to merge: as the repository allows. A queue has its own method.
func (m *Merging) Method() any {
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

// Merging reads the state of a pull request.
func (g Graph) Merging(ctx context.Context, owner, name string, number int) (*Merging, error) {
	type answer struct {
		Repository *Merging `json:"repository"`
	}
	complete := func(a *answer) bool {
		return a.Repository != nil && a.Repository.Pull != nil && a.Repository.Pull.ID != "" && a.Repository.Pull.Head != ""
	}
	a, err := Query(ctx, g, mergingQuery, map[string]any{"owner": owner, "name": name, "number": number}, complete)
	if err != nil {
		return nil, err
	}
	return a.Repository, nil
}

// Automate makes GitHub merge the pull request once it may, if its head is still the commit.
func (g Graph) Automate(ctx context.Context, m *Merging, commit string) error {
	return g.mutate(ctx, mergeMutation, map[string]any{"id": m.Pull.ID, "head": commit, "method": m.Method()})
}

// Enqueue puts the pull request into the base's merge queue, if its head is still the commit.
func (g Graph) Enqueue(ctx context.Context, m *Merging, commit string) error {
	return g.mutate(ctx, enqueueMutation, map[string]any{"id": m.Pull.ID, "head": commit})
}

// Keep takes back what Automate and Enqueue have done.
func (g Graph) Keep(ctx context.Context, m *Merging) error {
	if m.Pull.Auto != nil {
		if err := g.mutate(ctx, keepMutation, map[string]any{"id": m.Pull.ID}); err != nil {
			return err
		}
	}
	if m.Pull.Entry == nil {
		return nil
	}
	return g.mutate(ctx, dequeueMutation, map[string]any{"id": m.Pull.ID})
}

func (g Graph) mutate(ctx context.Context, text string, variables map[string]any) error {
	_, err := Query(ctx, g, text, variables, func(a *map[string]*object) bool { return len(*a) == 1 })
	return err
}
