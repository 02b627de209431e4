package githubtest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker/github/githubtest/graphql"
)

// graph answers a GraphQL request. Document and answer are validated against GitHub's schema; a violation fails the test.
func (s *Server) graph(a *Access, body []byte) reply {
	var in struct {
		Query     string         `json:"query"`
		Variables map[string]any `json:"variables"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	op, err := graphql.Parse(in.Query, in.Variables)
	if err != nil {
		s.t.Errorf("githubtest: %v\n%s", err, body)
		return graphError("", err.Error())
	}
	out := s.graphAnswer(a, in.Query, in.Variables)
	if out.status != http.StatusOK {
		return out
	}
	if data := out.body.(map[string]any)["data"]; data != nil {
		if err := op.Answer(data); err != nil {
			s.t.Errorf("githubtest: answer to %s: %v", in.Query, err)
		}
	}
	return out
}

// graphAnswer answers the few documents that ralph sends. Any other document fails the test.
func (s *Server) graphAnswer(a *Access, document string, variables map[string]any) reply {
	text := func(name string) string { v, _ := variables[name].(string); return v }
	id := text("id")
	number, _ := variables["number"].(float64)
	if r, known := s.graphMerge(a, document, variables); known {
		return r
	}
	switch {
	case strings.Contains(document, "userContentEdits(first:100)"):
		return s.graphEdits(int(number))
	case strings.Contains(document, "reactionGroups"):
		ids, _ := variables["ids"].([]any)
		return s.graphReactions(a, ids)
	case strings.Contains(document, "addReaction"):
		return s.graphAddReaction(a, id, text("content"))
	case strings.Contains(document, "reviewThreads(last:$last,before:$before)"):
		return s.graphThreads(int(number), int(variables["last"].(float64)), text("before"))
	case strings.Contains(document, "addPullRequestReviewThreadReply"):
		return s.graphReply(a, id, text("body"))
	case strings.Contains(document, "markPullRequestReadyForReview"), strings.Contains(document, "convertPullRequestToDraft"):
		return s.graphDraft(a, id, strings.Contains(document, "convertPullRequestToDraft"))
	}
	s.t.Errorf("githubtest: unknown GraphQL document %s", document)
	return graphError("", "unknown document")
}

func graphError(kind, message string) reply {
	e := map[string]any{"message": message}
	if kind != "" {
		e["type"] = kind
	}
	return ok(map[string]any{"data": nil, "errors": []any{e}})
}

func (s *Server) graphEdits(number int) reply {
	if number < 1 || number > len(s.issues) {
		return graphError("NOT_FOUND", "Could not resolve to an Issue with the number of "+strconv.Itoa(number)+".")
	}
	var last any
	nodes := []any{}
	for _, e := range s.issues[number-1].Edits {
		last = stamp(e.At)
		nodes = append([]any{map[string]any{"editedAt": stamp(e.At), "editor": s.actor(e.By)}}, nodes...)
	}
	issue := map[string]any{"lastEditedAt": last, "userContentEdits": map[string]any{"totalCount": len(nodes), "nodes": nodes}}
	return data(map[string]any{"repository": map[string]any{"issue": issue}})
}

func (s *Server) graphDraft(a *Access, id string, draft bool) reply {
	if !s.hasPermission(a, "write") {
		return graphError("FORBIDDEN", "Resource not accessible by integration")
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "PR_"))
	if n < 1 || n > len(s.issues) || s.issues[n-1].Pull == nil {
		return noNode(id)
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
	return data(map[string]any{mutation: map[string]any{"pullRequest": map[string]any{"isDraft": draft}}})
}
