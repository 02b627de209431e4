package githubtest

import (
	"slices"
	"strconv"
	"strings"
)

// MergeRules are the project's settings for auto-merge.
type MergeRules struct {
	Allowed  bool   // auto-merge is enabled
	Method   string // the only allowed method: MERGE, SQUASH or REBASE; empty: all
	Queue    bool   // the base has a merge queue
	Required bool   // checks are required on the base
	Clean    bool   // all requirements are met
	Decision string // review decision of all pull requests; empty: none
}

// SetMerging sets the rules.
func (s *Server) SetMerging(r MergeRules) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mergeRules = r
}

func (s *Server) graphMerge(a *Access, document string, variables map[string]any) (r reply, known bool) {
	id, _ := variables["id"].(string)
	head, _ := variables["head"].(string)
	number, _ := variables["number"].(float64)
	if id != "" {
		n, _ := strconv.Atoi(strings.TrimPrefix(id, "PR_"))
		number = float64(n)
	}
	var p *Pull
	if n := int(number); n > 0 && n <= len(s.issues) {
		p = s.issues[n-1].Pull
	}
	mentions := func(name string) bool { return strings.Contains(document, name) }
	refused := func(text string) reply { return graphError("UNPROCESSABLE", "Pull request "+text) }
	payload := func(name, field string) reply {
		return data(map[string]any{name: map[string]any{field: map[string]any{"id": id}}})
	}
	rules := s.mergeRules
	switch {
	case !mentions("autoMergeAllowed") && !mentions("AutoMerge(") && !mentions("enqueuePullRequest") && !mentions("dequeuePullRequest"):
		return r, false
	case p == nil:
		return noNode(id), true
	case mentions("autoMergeAllowed"):
		return data(map[string]any{"repository": s.graphMerging(int(number), p)}), true
	case !s.hasPermission(a, "write"):
		return graphError("FORBIDDEN", "Resource not accessible by integration"), true
	case head != "" && head != p.SHA:
		return refused("Head branch is out of date"), true
	case mentions("disablePullRequestAutoMerge"):
		p.AutoMerge = ""
		return payload("disablePullRequestAutoMerge", "pullRequest"), true
	case mentions("dequeuePullRequest"):
		p.Queued = false
		return payload("dequeuePullRequest", "mergeQueueEntry"), true
	case mentions("enqueuePullRequest"):
		if !rules.Queue {
			return refused("Merge queue is not enabled for this branch"), true
		}
		p.Queued = true
		return payload("enqueuePullRequest", "mergeQueueEntry"), true
	}
	method, _ := variables["method"].(string)
	switch {
	case !rules.Allowed:
		return refused("Auto merge is not allowed for this repository"), true
	case p.Draft:
		return refused("Pull request is in draft state"), true
	case rules.Clean:
		return refused("Pull request is in clean status"), true
	case !rules.Required:
		return refused("Protected branch rules not configured for this branch"), true
	case rules.Method != "" && method != rules.Method && !rules.Queue:
		return refused("Merge method is not allowed"), true
	}
	if p.AutoMerge = method; rules.Queue {
		p.AutoMerge = "QUEUE"
	}
	return payload("enablePullRequestAutoMerge", "pullRequest"), true
}

func (s *Server) graphMerging(number int, p *Pull) map[string]any {
	rules, node := s.mergeRules, map[string]any{"id": "X_1"}
	methodAllowed := func(method string) bool { return rules.Method == "" || rules.Method == method }
	threads := []any{}
	for _, r := range p.Reviews {
		for _, m := range r.Remarks {
			threads = append(threads, map[string]any{"isResolved": m.Resolved})
		}
	}
	pull := map[string]any{
		"id": "PR_" + strconv.Itoa(number), "isDraft": p.Draft, "headRefOid": p.SHA, "baseRefName": p.Base, "reviewDecision": nil,
		"autoMergeRequest": nil, "mergeQueue": nil, "mergeQueueEntry": nil, "reviewThreads": map[string]any{"nodes": threads},
	}
	if slices.Contains([]string{"CHANGES_REQUESTED", "APPROVED", "REVIEW_REQUIRED"}, rules.Decision) {
		pull["reviewDecision"] = rules.Decision
	}
	if p.AutoMerge != "" {
		pull["autoMergeRequest"] = map[string]any{"enabledAt": stamp(s.now())}
	}
	if rules.Queue {
		pull["mergeQueue"] = node
	}
	if p.Queued {
		pull["mergeQueueEntry"] = node
	}
	return map[string]any{
		"autoMergeAllowed": rules.Allowed, "mergeCommitAllowed": methodAllowed("MERGE"), "squashMergeAllowed": methodAllowed("SQUASH"),
		"rebaseMergeAllowed": methodAllowed("REBASE"), "pullRequest": pull,
	}
}
