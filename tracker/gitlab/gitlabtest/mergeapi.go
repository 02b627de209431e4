package gitlabtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (s *Server) closedBy(c *call, p *Project, i *Issue) answer {
	return paged(c, p.closingMerges(i), func(m *Merge) object { return s.mergeObject(p, m, false) })
}

func (s *Server) mergeObject(p *Project, m *Merge, full bool) object {
	p.refresh(m)
	status := "mergeable"
	if m.Conflicts {
		status = "conflict"
	}
	status = cmp.Or(m.MergeStatus, status)
	draft := strings.HasPrefix(strings.ToLower(m.Title), "draft:")
	o := object{
		"id": m.id, "iid": m.IID, "project_id": p.id, "title": m.Title, "description": m.Description, "state": m.State,
		"created_at": stamp(m.created), "updated_at": stamp(m.updated), "target_branch": m.Target, "source_branch": m.Source,
		"author": nil, "assignees": s.accounts(m.Assignees), "reviewers": s.accounts(m.Reviewers), "labels": m.Labels,
		"source_project_id": p.id, "target_project_id": p.id, "draft": draft, "work_in_progress": draft,
		"merge_status": "can_be_merged", "detailed_merge_status": status, "sha": m.SHA, "has_conflicts": m.Conflicts,
		"merge_when_pipeline_succeeds": m.AutoMerge,
		"should_remove_source_branch":  nil, "force_remove_source_branch": m.RemoveSource,
		"web_url": fmt.Sprintf("%s/%s/-/merge_requests/%d", s.URL, p.path, m.IID), "references": object{"short": "!" + strconv.Itoa(m.IID)},
		"blocking_discussions_resolved": !slices.ContainsFunc(m.threads, func(d *thread) bool { return d.notes[0].resolvable && !d.notes[0].resolved }),
	}
	if m.Labels == nil {
		o["labels"] = []string{}
	}
	if m.Author != nil {
		o["author"] = s.embeddedUser(m.Author.ID)
	}
	if !full {
		return o
	}
	o["diff_refs"] = object{"base_sha": strings.Repeat("0", 40), "head_sha": m.SHA, "start_sha": strings.Repeat("0", 40)}
	o["head_pipeline"] = nil
	if l := m.pipeline; l != nil { // after a push it is the previous one until GitLab has created another
		o["head_pipeline"] = object{
			"id": l.id, "iid": 1, "project_id": p.id, "sha": l.sha, "ref": l.ref, "status": l.status, "source": l.source,
			"created_at": stamp(l.at), "updated_at": stamp(l.at), "finished_at": stamp(l.at), "coverage": nil,
			"web_url": fmt.Sprintf("%s/%s/-/pipelines/%d", s.URL, p.path, l.id),
		}
	}
	return o
}

func (s *Server) accounts(users []*User) []any {
	out := []any{}
	for _, u := range users {
		out = append(out, s.embeddedUser(u.ID))
	}
	return out
}

func (s *Server) listMerges(c *call, p *Project) answer {
	var found []*Merge
	for _, m := range p.merges {
		q := c.query
		author := 0
		if m.Author != nil {
			author = m.Author.ID
		}
		if v := q.Get("author_id"); v != "" && v != strconv.Itoa(author) {
			continue
		}
		if v := q.Get("source_branch"); v != "" && v != m.Source {
			continue
		}
		if v := q.Get("state"); v == "" || v == "all" || v == m.State {
			found = append(found, m)
		}
	}
	if c.query.Get("sort") != "asc" {
		slices.Reverse(found)
	}
	return paged(c, found, func(m *Merge) object { return s.mergeObject(p, m, false) })
}

const maxTitle = 255

func (s *Server) createMerge(c *call, p *Project) answer {
	text := func(k string) string { v, _ := c.body[k].(string); return v }
	m := &Merge{
		Title:       text("title"),
		Description: text("description"),
		Source:      text("source_branch"),
		Target:      text("target_branch"),
		Author:      c.user,
		Labels:      names(c.body["labels"]),
		Reviewers:   s.usersByID(c.body["reviewer_ids"]),
		Assignees:   s.usersByID(c.body["assignee_ids"]),
	}
	m.RemoveSource, _ = c.body["remove_source_branch"].(bool)
	switch {
	case p.level(c.user.ID) < Developer:
		return forbidden()
	case m.Title == "" || m.Source == "" || m.Target == "":
		return badParameter("title is missing, source_branch is missing, target_branch is missing")
	case strings.TrimSpace(m.Title) == "":
		return badParameter("title is empty")
	case len([]rune(m.Title)) > maxTitle:
		return invalid("title", "is too long (maximum is 255 characters)")
	case p.git != nil && p.branch(m.Source) == "":
		return invalid("source_branch", "does not exist")
	case p.git != nil && p.branch(m.Target) == "":
		return invalid("target_branch", "does not exist")
	}
	for _, other := range p.merges {
		if other.State == "opened" && other.Source == m.Source && other.Target == m.Target {
			return answer{status: http.StatusConflict, body: object{"message": []string{
				fmt.Sprintf("Another open merge request already exists for this source branch: !%d", other.IID),
			}}}
		}
	}
	p.recordActions(m.Description)
	for _, l := range m.Labels {
		p.label(l)
	}
	m.Writes = 1
	return created(s.mergeObject(p, p.addMerge(m), true))
}

func (s *Server) updateMerge(c *call, p *Project, m *Merge) answer {
	if p.level(c.user.ID) < Developer {
		return forbidden()
	}
	if v, has := c.body["title"].(string); has && strings.TrimSpace(v) == "" {
		return badParameter("title is empty")
	}
	m.Writes++
	for key, into := range map[string]*string{"title": &m.Title, "description": &m.Description, "target_branch": &m.Target} {
		if v, has := c.body[key].(string); has {
			*into = v
		}
	}
	p.recordActions(m.Description)
	for _, l := range names(c.body["add_labels"]) {
		if p.label(l); !slices.Contains(m.Labels, l) {
			m.Labels = append(m.Labels, l)
		}
	}
	if v, has := c.body["reviewer_ids"]; has {
		m.Reviewers = s.usersByID(v)
	}
	if v, has := c.body["assignee_ids"]; has {
		m.Assignees = s.usersByID(v)
	}
	m.updated = s.now()
	return ok(s.mergeObject(p, m, true))
}

func (s *Server) usersByID(v any) (users []*User) {
	list, _ := v.([]any)
	for _, x := range list {
		if id, isNumber := x.(float64); isNumber && s.users[int(id)] != nil {
			users = append(users, s.users[int(id)])
		}
	}
	return users
}

func (s *Server) versions(c *call, p *Project, m *Merge) answer {
	p.refresh(m)
	newest := slices.Clone(m.versions)
	slices.Reverse(newest)
	return paged(c, newest, func(v version) object {
		return object{
			"id": v.id, "head_commit_sha": v.sha, "base_commit_sha": strings.Repeat("0", 40),
			"start_commit_sha": strings.Repeat("0", 40), "created_at": stamp(v.at), "merge_request_id": m.id, "state": "collected",
			"real_size": "1",
		}
	})
}
