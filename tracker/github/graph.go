package github

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/api"
)

// The parts of the GraphQL API that REST lacks.
const (
	editsQuery = `query($owner:String!,$name:String!,$number:Int!){repository(owner:$owner,name:$name){issue(number:$number){` +
		`lastEditedAt userContentEdits(first:100){totalCount nodes{editedAt editor{__typename login ` +
		`...on User{databaseId} ...on Bot{databaseId} ...on Mannequin{databaseId}}}}}}}`
	readyMutation = `mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}`
	draftMutation = `mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}`
)

// drafted is the answer to a mutation, by the mutation's name.
type drafted map[string]struct {
	Pull struct {
		Draft *bool `json:"isDraft"`
	} `json:"pullRequest"`
}

// completeDraft needs the state of the request.
func completeDraft(d *drafted) bool {
	for _, v := range *d {
		if v.Pull.Draft == nil {
			return false
		}
	}
	return len(*d) == 1
}

type edit struct {
	by forge.Account
	at time.Time
}

type edits struct {
	last  time.Time
	edits []edit
	more  bool // than were read
}

// bodyHistory is the answer to editsQuery.
type bodyHistory struct {
	Repository *struct {
		Issue *struct {
			LastEditedAt     present `json:"lastEditedAt"`
			UserContentEdits struct {
				TotalCount int `json:"totalCount"`
				Nodes      []struct {
					EditedAt time.Time  `json:"editedAt"`
					Editor   *api.Actor `json:"editor"`
				} `json:"nodes"`
			} `json:"userContentEdits"`
		} `json:"issue"`
	} `json:"repository"`
}

// present is a time, or null for never, that an answer must have.
type present struct {
	present bool
	at      time.Time
}

// UnmarshalJSON notes that it is there.
func (p *present) UnmarshalJSON(b []byte) error {
	p.present = true
	return json.Unmarshal(b, &p.at)
}

// completeHistory needs the time of the last edit: an answer without it does not say that there was none.
func completeHistory(h *bodyHistory) bool {
	return h.Repository != nil && h.Repository.Issue != nil && h.Repository.Issue.LastEditedAt.present
}

// bodyEdits reads who edited an issue's body, and when.
func (t *Tracker) bodyEdits(ctx context.Context, number int) (edits, error) {
	variables := map[string]any{"owner": t.project.Owner, "name": t.project.Name, "number": number}
	data, err := api.Query(forge.Reading(ctx), t.graph, editsQuery, variables, completeHistory)
	if err != nil {
		return edits{}, err
	}
	i := data.Repository.Issue
	out := edits{last: i.LastEditedAt.at, more: i.UserContentEdits.TotalCount > len(i.UserContentEdits.Nodes)}
	for _, n := range i.UserContentEdits.Nodes {
		out.edits = append(out.edits, edit{at: n.EditedAt, by: n.Editor.Account()})
	}
	return out, nil
}
