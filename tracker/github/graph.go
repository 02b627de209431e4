package github

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/github/internal/api"
)

// Requests that the REST API does not support.
const (
	editsQuery = `query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){issue(number:$number){` +
		`lastEditedAt userContentEdits(first:100){totalCount nodes{editedAt editor{__typename login ` +
		`...on User{databaseId} ...on Bot{databaseId} ...on Mannequin{databaseId}}}}}}}`
	readyMutation = `mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}`
	draftMutation = `mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}`
)

// draftAnswer is the answer to a mutation, by the mutation's name.
type draftAnswer map[string]struct {
	Pull struct {
		Draft *bool `json:"isDraft"`
	} `json:"pullRequest"`
}

// completeDraft requires the draft state of the request.
func completeDraft(d *draftAnswer) bool {
	for _, v := range *d {
		if v.Pull.Draft == nil {
			return false
		}
	}
	return len(*d) == 1
}

// editHistory is the edit history of an issue's body.
type editHistory struct {
	LastEditedAt     json.RawMessage `json:"lastEditedAt"` // null: never
	UserContentEdits struct {
		TotalCount int `json:"totalCount"`
		Nodes      []struct {
			EditedAt time.Time  `json:"editedAt"`
			Editor   *api.Actor `json:"editor"`
		} `json:"nodes"`
	} `json:"userContentEdits"`
}

func (e *editHistory) lastEdit() (at time.Time, err error) {
	return at, json.Unmarshal(e.LastEditedAt, &at)
}

// bodyHistory is the answer to editsQuery.
type bodyHistory struct {
	Repository *struct {
		Issue *editHistory `json:"issue"`
	} `json:"repository"`
}

// completeHistory requires the time of the last edit: without it, an answer does not prove that there was none.
func completeHistory(h *bodyHistory) bool {
	if h.Repository == nil || h.Repository.Issue == nil {
		return false
	}
	_, err := h.Repository.Issue.lastEdit()
	return err == nil
}

// bodyEdits reads who edited an issue's body, and when.
func (t *Tracker) bodyEdits(ctx context.Context, number int) (*editHistory, error) {
	variables := map[string]any{"owner": t.project.Owner, "name": t.project.Name, "number": number}
	data, err := api.Query(transport.WithReadOnly(ctx), t.graph, editsQuery, variables, completeHistory)
	if err != nil {
		return nil, err
	}
	return data.Repository.Issue, nil
}
