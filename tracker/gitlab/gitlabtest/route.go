package gitlabtest

import (
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
		return s.inProject(c, parts[1], parts[2:])
	}
	switch shape(c, parts) {
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
	return answer{status: http.StatusNotFound, body: object{"error": "404 Not Found"}}
}

// shape names a call by its method and path, with numbers as "#".
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

func (s *Server) inProject(c *call, name string, rest []string) answer {
	p := s.project(name)
	if p == nil || (p.Private && p.level(c.user.ID) == 0) {
		return notFound("Project")
	}
	kind := shape(c, rest)
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
		return s.inIssue(c, p, strings.Replace(kind, "issues/#", "", 1), rest[1:])
	case len(rest) >= 2 && rest[0] == "merge_requests":
		return s.inMerge(c, p, strings.Replace(kind, "merge_requests/#", "", 1), rest[1:])
	}
	return answer{status: http.StatusNotFound, body: object{"error": "404 Not Found"}}
}

func (s *Server) inIssue(c *call, p *Project, kind string, rest []string) answer {
	i := p.issue(number(rest[0]))
	if i == nil || (i.Confidential && p.level(c.user.ID) < Reporter && i.author != c.user.ID) {
		return notFound("Issue")
	}
	switch kind {
	case "GET ":
		return ok(s.issueObject(p, i))
	case "PUT ":
		return s.updateIssue(c, p, i)
	case "GET /notes":
		return s.listNotes(c, p, i)
	case "POST /notes":
		return s.createNote(c, p, i)
	case "PUT /notes/#":
		return s.updateNote(c, p, i, number(rest[2]))
	case "DELETE /notes/#":
		return p.deleteNote(c, i, number(rest[2]))
	case "GET /notes/#/award_emoji", "POST /notes/#/award_emoji":
		return s.awards(c, p, "issues", i.iid, number(rest[2]))
	case "GET /resource_label_events":
		return s.labelEvents(c, i)
	case "GET /links":
		return s.links(i)
	case "GET /closed_by":
		return s.closedBy(c, p, i)
	}
	return answer{status: http.StatusNotFound, body: object{"error": "404 Not Found"}}
}

func (s *Server) inMerge(c *call, p *Project, kind string, rest []string) answer {
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
		return s.discussions(c, m)
	case "POST /discussions/" + rest[min(len(rest)-1, 2)] + "/notes":
		return s.answer(c, p, m, rest[2])
	case "GET /notes":
		return s.mergeNotes(c, m)
	case "POST /notes":
		return s.createMergeNote(c, p, m)
	case "DELETE /notes/#":
		return p.deleteMergeNote(c, m, number(rest[2]))
	case "GET /notes/#/award_emoji", "POST /notes/#/award_emoji":
		return s.awards(c, p, "merge_requests", m.IID, number(rest[2]))
	}
	return answer{status: http.StatusNotFound, body: object{"error": "404 Not Found"}}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// unknownParameter finds a parameter that the call's documentation does not have.
func unknownParameter(c *call, known ...string) (string, bool) {
	known = append(known, "page", "per_page", "pagination", "cursor")
	if c.r.Method == http.MethodGet {
		for k := range c.query {
			if !slices.Contains(known, k) {
				return k, true
			}
		}
		return "", false
	}
	for k := range c.body {
		if !slices.Contains(known, k) {
			return k, true
		}
	}
	return "", false
}
