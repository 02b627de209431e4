package githubtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// graph answers the few GraphQL documents that ralph sends. Another one fails the test.
func (s *Server) graph(a *Access, body []byte) reply {
	var in struct {
		Query     string `json:"query"`
		Variables struct {
			Owner, Name, ID string
			Number          int
		} `json:"variables"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	switch {
	case strings.Contains(in.Query, "userContentEdits(first:100)"):
		return s.graphEdits(in.Variables.Number)
	case strings.Contains(in.Query, "markPullRequestReadyForReview"), strings.Contains(in.Query, "convertPullRequestToDraft"):
		draft := strings.Contains(in.Query, "convertPullRequestToDraft")
		return s.graphDraft(a, in.Variables.ID, draft)
	}
	s.t.Errorf("githubtest: unknown GraphQL document %s", in.Query)
	return graphError("", "unknown document")
}

func graphError(kind, message string) reply {
	e := map[string]any{"message": message}
	if kind != "" {
		e["type"] = kind
	}
	return reply{status: http.StatusOK, body: map[string]any{"data": nil, "errors": []any{e}}}
}

func (s *Server) graphEdits(number int) reply {
	if number < 1 || number > len(s.issues) {
		return graphError("NOT_FOUND", "Could not resolve to an Issue with the number of "+strconv.Itoa(number)+".")
	}
	var last any
	nodes := []any{}
	for _, e := range s.issues[number-1].Edits {
		last = stamp(e.At)
		var editor any
		if u := s.users[strings.ToLower(e.By)]; u != nil {
			kind := "User"
			if u.Bot {
				kind = "Bot"
			}
			editor = map[string]any{"__typename": kind, "login": strings.TrimSuffix(u.Login, "[bot]"), "databaseId": u.ID}
		}
		nodes = append([]any{map[string]any{"editedAt": stamp(e.At), "editor": editor}}, nodes...)
	}
	issue := map[string]any{"lastEditedAt": last, "userContentEdits": map[string]any{"totalCount": len(nodes), "nodes": nodes}}
	return reply{status: http.StatusOK, body: map[string]any{"data": map[string]any{"repository": map[string]any{"issue": issue}}}}
}

func (s *Server) graphDraft(a *Access, id string, draft bool) reply {
	if !s.may(a, "write") {
		return graphError("FORBIDDEN", "Resource not accessible by integration")
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "PR_"))
	if n < 1 || n > len(s.issues) || s.issues[n-1].Pull == nil {
		return graphError("NOT_FOUND", "Could not resolve to a node with the global id of '"+id+"'")
	}
	if draft && s.repo.private {
		return graphError("UNPROCESSABLE", "Pull request can't be converted to draft")
	}
	i := s.issues[n-1]
	i.Pull.Draft, i.Updated = draft, s.now()
	mutation := "markPullRequestReadyForReview"
	if draft {
		mutation = "convertPullRequestToDraft"
	}
	now := map[string]any{"pullRequest": map[string]any{"isDraft": draft}}
	return reply{status: http.StatusOK, body: map[string]any{"data": map[string]any{mutation: now}}}
}
