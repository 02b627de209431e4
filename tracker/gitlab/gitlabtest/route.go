package gitlabtest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// dispatch routes a call. Calls are answered one at a time, like transactions.
func (s *Server) dispatch(c *call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(c.r.URL.EscapedPath(), apiPath)
	var parts []string
	for p := range strings.SplitSeq(path, "/") {
		text, err := url.PathUnescape(p)
		if err != nil {
			return badParameter("path is invalid")
		}
		parts = append(parts, text)
	}
	if parts[0] == "projects" && len(parts) >= 2 {
		return s.routeProject(c, parts[1], parts[2:])
	}
	kind := shape(c, parts)
	if k, bad := unknownParameter(c, kind); bad {
		return badParameter("%s is invalid", k)
	}
	switch kind {
	case "GET version":
		return ok(object{"version": "18.5.1-ee", "revision": "a1b2c3d4e5f"})
	case "GET user":
		return ok(s.userObject(c.user, true))
	case "GET users":
		return s.findUsers(c)
	case "GET users/#":
		return s.oneUser(parts[1])
	case "GET personal_access_tokens/self":
		return ok(c.token.object())
	}
	return noRoute()
}

// shape returns the method and path of a call, with numbers replaced by "#".
func shape(c *call, parts []string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p
		if _, err := strconv.Atoi(p); err == nil {
			out[i] = "#"
		}
	}
	return c.r.Method + " " + strings.Join(out, "/")
}

func (s *Server) routeProject(c *call, name string, rest []string) answer {
	p := s.project(name)
	switch write := c.r.Method != http.MethodGet; {
	case p == nil || p.Hidden || (p.Private && p.level(c.user.ID) == 0):
		return notFound("Project")
	case p.oldPath != "" && strings.EqualFold(name, p.oldPath) && write:
		return refusal(http.StatusMethodNotAllowed, "Non GET methods are not allowed for moved projects")
	case p.oldPath != "" && strings.EqualFold(name, p.oldPath):
		to := fmt.Sprintf("%s%sprojects/%d/%s?%s", s.URL, apiPath, p.id, strings.Join(rest, "/"), c.query.Encode())
		return answer{status: http.StatusFound, header: map[string]string{"Location": to}, body: []byte{}}
	case p.Archived && write:
		return forbidden()
	}
	kind := shape(c, rest)
	if k, bad := unknownParameter(c, kind); bad {
		return badParameter("%s is invalid", k)
	}
	switch kind {
	case "GET ":
		return ok(s.projectObject(p, c.user))
	case "GET events":
		return s.listEvents(c, p)
	case "GET labels":
		return s.listLabels(c, p)
	case "POST labels":
		return s.createLabel(c, p)
	case "GET members/all":
		return s.listMembers(c, p)
	case "GET members/all/#":
		return s.member(p, number(rest[2]))
	case "GET issues":
		return s.listIssues(c, p)
	case "GET merge_requests":
		return s.listMerges(c, p)
	case "POST merge_requests":
		return s.createMerge(c, p)
	case "POST merge_trains/merge_requests/#":
		return s.joinTrain(c, p, p.merge(number(rest[2])))
	case "GET pipelines/#/jobs":
		return s.listJobs(c, p, number(rest[1]))
	case "GET jobs/#/trace":
		return p.trace(number(rest[1]))
	}
	switch {
	case len(rest) >= 2 && rest[0] == "issues":
		return s.routeIssue(c, p, strings.Replace(kind, "issues/#", "", 1), rest[1:])
	case len(rest) >= 2 && rest[0] == "merge_requests":
		return s.routeMerge(c, p, strings.Replace(kind, "merge_requests/#", "", 1), rest[1:])
	}
	return noRoute()
}

func (s *Server) routeIssue(c *call, p *Project, kind string, rest []string) answer {
	i := p.issue(number(rest[0]))
	if i == nil || i.Deleted || p.NoIssues || (i.Confidential && p.level(c.user.ID) < Reporter && i.author != c.user.ID) {
		return notFound("Issue")
	}
	switch kind {
	case "GET ":
		return ok(s.issueObject(p, i))
	case "PUT ":
		return s.updateIssue(c, p, i)
	case "GET /resource_label_events":
		return s.labelEvents(c, i)
	case "GET /links":
		return s.links(i)
	case "GET /closed_by":
		return s.closedBy(c, p, i)
	}
	if i.Locked && p.level(c.user.ID) == 0 && c.r.Method != http.MethodGet {
		return forbidden()
	}
	return s.routeNotes(c, p, p.issueNotes(i), kind, rest)
}

func (s *Server) routeMerge(c *call, p *Project, kind string, rest []string) answer {
	m := p.merge(number(rest[0]))
	if m == nil {
		return notFound("Merge Request")
	}
	switch kind {
	case "GET ":
		return ok(s.mergeObject(p, m, true))
	case "PUT ":
		return s.updateMerge(c, p, m)
	case "PUT /merge":
		return s.acceptMerge(c, p, m)
	case "POST /cancel_merge_when_pipeline_succeeds":
		return s.keepMerge(c, p, m)
	case "GET /versions":
		return s.versions(c, p, m)
	case "GET /discussions":
		return s.discussions(c, p, m)
	case "POST /discussions/" + rest[min(len(rest)-1, 2)] + "/notes":
		return s.answer(c, p, m, rest[2])
	}
	return s.routeNotes(c, p, p.mergeNotes(m), kind, rest)
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// parameters lists the documented parameters of a kind of call, without those for pages; false: any are allowed.
func parameters(kind string) (known string, checked bool) {
	switch {
	case strings.HasPrefix(kind, "POST merge_requests/#/discussions/"), kind == "PUT issues/#/notes/#":
		return "body", true
	case kind == "GET issues/#/notes", kind == "GET merge_requests/#/notes":
		return "order_by sort", true
	case kind == "POST issues/#/notes", kind == "POST merge_requests/#/notes":
		return "body internal", true
	case strings.HasSuffix(kind, "/award_emoji") && strings.HasPrefix(kind, "POST"):
		return "name", true
	}
	known, checked = map[string]string{
		"GET users":            "username",
		"GET events":           "action target_type before after sort",
		"GET labels":           "with_counts include_ancestor_groups search archived",
		"POST labels":          "name color description priority archived",
		"GET members/all":      "query user_ids show_seat_info state",
		"GET issues":           "state order_by sort iids[] labels scope issue_type",
		"PUT issues/#":         "add_labels remove_labels state_event assignee_ids",
		"GET merge_requests":   "state scope author_id source_branch target_branch order_by sort with_merge_status_recheck",
		"POST merge_requests":  "title description source_branch target_branch labels reviewer_ids assignee_ids remove_source_branch",
		"PUT merge_requests/#": "title description target_branch add_labels reviewer_ids assignee_ids",
		"PUT merge_requests/#/merge": "merge_when_pipeline_succeeds auto_merge sha squash " +
			"should_remove_source_branch merge_commit_message " +
			"squash_commit_message",
		"POST merge_trains/merge_requests/#": "when_pipeline_succeeds auto_merge sha squash",
		"GET pipelines/#/jobs":               "scope[] include_retried",
	}[kind]
	return known, checked
}

// unknownParameter returns a parameter of the call that GitLab does not document.
func unknownParameter(c *call, kind string) (string, bool) {
	text, checked := parameters(kind)
	known := append(strings.Fields(text), "page", "per_page", "pagination", "cursor")
	var given []string
	if c.r.Method == http.MethodGet {
		given = slices.Collect(maps.Keys(c.query))
	} else {
		given = slices.Collect(maps.Keys(c.body))
	}
	at := slices.IndexFunc(given, func(k string) bool { return !slices.Contains(known, k) })
	if !checked || at < 0 {
		return "", false
	}
	return given[at], true
}
