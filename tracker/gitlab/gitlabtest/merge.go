package gitlabtest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Merge is a merge request. Tests read it through Project.Merges.
type Merge struct {
	IID          int
	Title        string
	Description  string
	Source       string
	Target       string
	State        string // "opened", "closed", "merged"
	Author       *User
	Labels       []string
	Reviewers    []*User
	Assignees    []*User
	SHA          string
	Conflicts    bool
	MergeStatus  string // detailed; empty: "mergeable"
	RemoveSource bool
	Writes       int // through the API

	id       int
	created  time.Time
	updated  time.Time
	versions []version
	threads  []*thread
	pipeline *pipeline
}

type version struct {
	id  int
	sha string
	at  time.Time
}

type thread struct {
	id    string
	alone bool
	notes []*threadNote
}

type threadNote struct {
	id         int
	author     int
	body       string
	at         time.Time
	resolvable bool
	resolved   bool
	system     bool
	path       string
	line       int
}

type pipeline struct {
	id     int
	status string
	sha    string
	at     time.Time
}

// AddMerge makes a merge request as a person does, and returns its number.
func (p *Project) AddMerge(m Merge) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.addMerge(&m).IID
}

func (p *Project) addMerge(m *Merge) *Merge {
	m.id, m.IID, m.State = p.s.id(), len(p.merges)+1, "opened"
	m.created = p.s.now()
	m.updated = m.created
	p.merges = append(p.merges, m)
	p.refresh(m)
	return m
}

// refresh takes over what the source branch points to.
func (p *Project) refresh(m *Merge) {
	sha := p.branch(m.Source)
	if sha == "" {
		sha = m.SHA
	}
	if sha == "" {
		sha = strings.Repeat("1", 40)
	}
	if n := len(m.versions); n > 0 && m.versions[n-1].sha == sha {
		return
	}
	m.SHA = sha
	m.versions = append(m.versions, version{p.s.id(), sha, p.s.now()})
}

// Push makes a merge request's source branch point to another commit, where there is no repository.
func (p *Project) Push(iid int, sha string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	m.SHA = sha
	p.refresh(m)
}

// Merges are copies of the merge requests, oldest first.
func (p *Project) Merges() []Merge {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	var out []Merge
	for _, m := range p.merges {
		out = append(out, *m)
	}
	return out
}

// SetMerge lets edit change a merge request past the API.
func (p *Project) SetMerge(iid int, edit func(*Merge)) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	edit(m)
	m.updated = p.s.now()
}

func (p *Project) merge(iid int) *Merge {
	if iid < 1 || iid > len(p.merges) {
		return nil
	}
	return p.merges[iid-1]
}

// Thread is a discussion to begin on a merge request.
type Thread struct {
	By         *User
	Body       string
	Resolvable bool
	Resolved   bool
	System     bool
	Path       string // of a diff note
	Line       int
}

// Discuss begins a discussion and returns its id.
func (p *Project) Discuss(iid int, t Thread) string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	d := &thread{id: fmt.Sprintf("%040x", p.s.id()), alone: !t.Resolvable}
	d.notes = append(d.notes, &threadNote{
		id: p.s.id(), author: t.By.ID, body: t.Body, at: p.s.now(), resolvable: t.Resolvable, resolved: t.Resolved,
		system: t.System, path: t.Path, line: t.Line,
	})
	m.threads = append(m.threads, d)
	return d.id
}

// Answer adds a note to a discussion.
func (p *Project) Answer(iid int, discussion string, by *User, body string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, d := range p.merge(iid).threads {
		if d.id == discussion {
			d.notes = append(d.notes, &threadNote{
				id: p.s.id(), author: by.ID, body: body, at: p.s.now(), resolvable: d.notes[0].resolvable,
			})
		}
	}
}

// closing are the merge requests that close an issue when they are merged.
func (p *Project) closing(i *Issue) (found []*Merge) {
	pattern := regexp.MustCompile(fmt.Sprintf(`(?i)\b(?:close[sd]?|closing|fix(?:e[sd]|ing)?|resolve[sd]?|resolving|implement(?:s|ed|ing)?):? #%d\b`, i.iid))
	for _, m := range p.merges {
		if pattern.MatchString(m.Description) {
			found = append(found, m)
		}
	}
	return found
}

func (s *Server) closedBy(c *call, p *Project, i *Issue) answer {
	return paged(c, p.closing(i), func(m *Merge) object { return s.mergeObject(p, m, false) })
}

func (s *Server) mergeObject(p *Project, m *Merge, whole bool) object {
	p.refresh(m)
	status := m.MergeStatus
	switch {
	case status != "":
	case m.Conflicts:
		status = "conflict"
	default:
		status = "mergeable"
	}
	draft := strings.HasPrefix(strings.ToLower(m.Title), "draft:")
	o := object{
		"id": m.id, "iid": m.IID, "project_id": p.id, "title": m.Title, "description": m.Description, "state": m.State,
		"created_at": stamp(m.created), "updated_at": stamp(m.updated), "target_branch": m.Target, "source_branch": m.Source,
		"author": nil, "assignees": s.accounts(m.Assignees), "reviewers": s.accounts(m.Reviewers), "labels": m.Labels,
		"source_project_id": p.id, "target_project_id": p.id, "draft": draft, "work_in_progress": draft,
		"merge_status": "can_be_merged", "detailed_merge_status": status, "sha": m.SHA, "has_conflicts": m.Conflicts,
		"should_remove_source_branch": nil, "force_remove_source_branch": m.RemoveSource,
		"web_url": fmt.Sprintf("%s/%s/-/merge_requests/%d", s.URL, p.path, m.IID), "references": object{"short": "!" + strconv.Itoa(m.IID)},
		"blocking_discussions_resolved": !slices.ContainsFunc(m.threads, func(d *thread) bool { return d.notes[0].resolvable && !d.notes[0].resolved }),
	}
	if m.Labels == nil {
		o["labels"] = []string{}
	}
	if m.Author != nil {
		o["author"] = s.basic(m.Author.ID)
	}
	if !whole {
		return o
	}
	o["diff_refs"] = object{"base_sha": strings.Repeat("0", 40), "head_sha": m.SHA, "start_sha": strings.Repeat("0", 40)}
	o["head_pipeline"] = nil
	if l := m.pipeline; l != nil && l.sha == m.SHA {
		o["head_pipeline"] = object{
			"id": l.id, "iid": 1, "project_id": p.id, "sha": l.sha, "ref": m.Source, "status": l.status, "source": "push",
			"created_at": stamp(l.at), "updated_at": stamp(l.at), "finished_at": stamp(l.at), "coverage": nil, "allow_failure": false,
			"web_url": fmt.Sprintf("%s/%s/-/pipelines/%d", s.URL, p.path, l.id),
		}
	}
	return o
}

func (s *Server) accounts(users []*User) []any {
	out := []any{}
	for _, u := range users {
		out = append(out, s.basic(u.ID))
	}
	return out
}

func (s *Server) listMerges(c *call, p *Project) answer {
	if k, bad := unknownParameter(c, "state", "scope", "author_id", "source_branch", "target_branch", "order_by", "sort", "with_merge_status_recheck"); bad {
		return badParameter("%s is invalid", k)
	}
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
	if k, bad := unknownParameter(c, "title", "description", "source_branch", "target_branch", "labels", "reviewer_ids", "assignee_ids", "remove_source_branch"); bad {
		return badParameter("%s is invalid", k)
	}
	text := func(k string) string { v, _ := c.body[k].(string); return v }
	m := &Merge{
		Title: text("title"), Description: text("description"), Source: text("source_branch"), Target: text("target_branch"),
		Author: c.user, Labels: names(c.body["labels"]), Reviewers: s.byID(c.body["reviewer_ids"]), Assignees: s.byID(c.body["assignee_ids"]),
	}
	m.RemoveSource, _ = c.body["remove_source_branch"].(bool)
	switch {
	case p.level(c.user.ID) < Developer:
		return forbidden()
	case m.Title == "" || m.Source == "" || m.Target == "":
		return badParameter("title is missing, source_branch is missing, target_branch is missing")
	case len([]rune(m.Title)) > maxTitle:
		return answer{status: http.StatusBadRequest, body: object{"message": object{"title": []string{"is too long (maximum is 255 characters)"}}}}
	case p.git != "" && p.branch(m.Source) == "":
		return answer{status: http.StatusBadRequest, body: object{"message": object{"source_branch": []string{"does not exist"}}}}
	}
	for _, other := range p.merges {
		if other.State == "opened" && other.Source == m.Source && other.Target == m.Target {
			return answer{status: http.StatusConflict, body: object{"message": []string{
				fmt.Sprintf("Another open merge request already exists for this source branch: !%d", other.IID),
			}}}
		}
	}
	p.act(m.Description)
	for _, l := range m.Labels {
		p.label(l)
	}
	m.Writes = 1
	return created(s.mergeObject(p, p.addMerge(m), true))
}

func (s *Server) updateMerge(c *call, p *Project, m *Merge) answer {
	if k, bad := unknownParameter(c, "title", "description", "target_branch", "add_labels", "reviewer_ids", "assignee_ids"); bad {
		return badParameter("%s is invalid", k)
	}
	if p.level(c.user.ID) < Developer {
		return forbidden()
	}
	m.Writes++
	for key, into := range map[string]*string{"title": &m.Title, "description": &m.Description, "target_branch": &m.Target} {
		if v, has := c.body[key].(string); has {
			*into = v
		}
	}
	p.act(m.Description)
	for _, l := range names(c.body["add_labels"]) {
		if p.label(l); !slices.Contains(m.Labels, l) {
			m.Labels = append(m.Labels, l)
		}
	}
	if v, has := c.body["reviewer_ids"]; has {
		m.Reviewers = s.byID(v)
	}
	if v, has := c.body["assignee_ids"]; has {
		m.Assignees = s.byID(v)
	}
	m.updated = s.now()
	return ok(s.mergeObject(p, m, true))
}

func (s *Server) byID(v any) (users []*User) {
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
			"real_size": "1", "patch_id_sha": v.sha,
		}
	})
}

func (s *Server) discussions(c *call, m *Merge) answer {
	return paged(c, m.threads, func(d *thread) object {
		notes := []object{}
		for _, n := range d.notes {
			o := object{
				"id": n.id, "type": "DiscussionNote", "body": n.body, "author": s.basic(n.author), "created_at": stamp(n.at),
				"noteable_type": "MergeRequest", "noteable_iid": m.IID, //nolint:misspell // GitLab's own word
				"updated_at": stamp(n.at), "system": n.system, "resolvable": n.resolvable, "confidential": false, "internal": false,
			}
			if n.resolvable {
				o["resolved"], o["resolved_by"] = n.resolved, nil
			}
			if n.path != "" {
				o["type"] = "DiffNote"
				o["position"] = object{"new_path": n.path, "old_path": n.path, "new_line": n.line, "old_line": nil, "position_type": "text"}
			}
			notes = append(notes, o)
		}
		return object{"id": d.id, "individual_note": d.alone, "notes": notes}
	})
}
