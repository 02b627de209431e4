package github

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// The parts of the GraphQL API that REST lacks. Its published description is another one, so that these are few.
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

// Whole wants it said what the request is now.
func (d drafted) Whole() bool {
	for _, v := range d {
		if v.Pull.Draft == nil {
			return false
		}
	}
	return len(d) == 1
}

type edit struct {
	by *user
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
			LastEditedAt     said `json:"lastEditedAt"`
			UserContentEdits struct {
				TotalCount int `json:"totalCount"`
				Nodes      []struct {
					EditedAt time.Time `json:"editedAt"`
					Editor   *struct {
						Typename   string `json:"__typename"`
						Login      string `json:"login"`
						DatabaseID int64  `json:"databaseId"`
					} `json:"editor"`
				} `json:"nodes"`
			} `json:"userContentEdits"`
		} `json:"issue"`
	} `json:"repository"`
}

// said is a time, or null for never, that an answer has to have.
type said struct {
	said bool
	at   time.Time
}

// UnmarshalJSON notes that it is there.
func (s *said) UnmarshalJSON(b []byte) error {
	s.said = true
	return json.Unmarshal(b, &s.at)
}

// Whole wants it said that there was no edit: silence is no word for it.
func (h bodyHistory) Whole() bool {
	return h.Repository != nil && h.Repository.Issue != nil && h.Repository.Issue.LastEditedAt.said
}

// bodyEdits reads who edited an issue's body, and when.
func (t *Tracker) bodyEdits(ctx context.Context, number int) (edits, error) {
	var data bodyHistory
	variables := map[string]any{"owner": t.cfg.Project.Owner, "name": t.cfg.Project.Name, "number": number}
	if err := t.query(forge.Reading(ctx), editsQuery, variables, &data); err != nil {
		return edits{}, err
	}
	i := data.Repository.Issue
	out := edits{last: i.LastEditedAt.at, more: i.UserContentEdits.TotalCount > len(i.UserContentEdits.Nodes)}
	for _, n := range i.UserContentEdits.Nodes {
		e := edit{at: n.EditedAt}
		if n.Editor != nil {
			e.by = &user{ID: n.Editor.DatabaseID, Login: n.Editor.Login, Type: n.Editor.Typename}
		}
		out.edits = append(out.edits, e)
	}
	return out, nil
}

// query makes one GraphQL request and decodes what it asks for into data. Refusals there come with status 200.
func (t *Tracker) query(ctx context.Context, query string, variables map[string]any, data any) error {
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	body := map[string]any{"query": query, "variables": variables}
	ctx = forge.Into(ctx, func(text []byte) error {
		if err := forge.Decode(text, &answer); err != nil || len(answer.Errors) > 0 {
			return err
		}
		return forge.Decode(answer.Data, data)
	})
	if _, err := t.call(ctx, http.MethodPost, t.graph, body, nil); err != nil {
		return err
	}
	if len(answer.Errors) == 0 {
		return nil
	}
	e := answer.Errors[0]
	f := &forge.Failure{Method: http.MethodPost, Path: "/graphql", Action: forge.Skip,
		What: "GitHub refuses the query (" + clip(cmp.Or(e.Message, e.Type), 200) + ")"}
	switch e.Type {
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		f.Action, f.Mend = forge.Stop, "give the token read permission for issues and pull requests"
	case "RATE_LIMITED":
		f.Action = forge.Wait
	case "NOT_FOUND":
		f.Status = http.StatusNotFound
	case "": // GitHub's own faults have no type
		f.Action = forge.Retry
	}
	return forge.Explain(ctx, nil, "", f)
}
