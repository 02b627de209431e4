package gitlabtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// Project is a repository with issues and merge requests. Its methods act like people in the browser.
type Project struct {
	Private  bool
	Public   bool // everybody may see it
	Archived bool // read-only
	Hidden   bool // no account may see it
	NoIssues bool // issues are disabled
	NoMerge  bool // the base is protected: no account may merge
	Trains   bool // the project has merge trains
	// HideMembers refuses the list of members, but not a request for a single one.
	HideMembers bool

	s       *Server
	id      int
	path    string
	oldPath string      // path before MoveTo; empty: never moved
	members map[int]int // access level by user; guarded by s.mu, as all below
	labels  []*label
	issues  []*Issue
	merges  []*Merge
	jobs    []*Job
	actions []string
	awarded map[int][]*award      // by note
	git     *forgetest.Repository // nil: none
}

type label struct {
	id          int
	name        string
	color       string
	description string
	group       bool // belongs to the group above the project
}

// AddProject creates a project; path includes its groups.
func (s *Server) AddProject(path string) *Project {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Project{s: s, id: s.id(), path: path, members: map[int]int{}, awarded: map[int][]*award{}}
	s.projects[p.id] = p
	return p
}

// MoveTo moves the project to another path, like its owner.
func (p *Project) MoveTo(path string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.oldPath, p.path = p.path, path
}

// SetProject changes the project's settings while the server runs.
func (p *Project) SetProject(change func(*Project)) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	change(p)
}

// Path returns the project's name including its groups.
func (p *Project) Path() string { return p.path }

// Remote returns the address of the git repository.
func (p *Project) Remote() string { return p.s.URL + "/" + p.path + ".git" }

// SetMember gives an account a role; 0 removes it.
func (p *Project) SetMember(u *User, level int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.members[u.ID] = level
}

// AddLabel creates a label, in the group above the project if group is set.
func (p *Project) AddLabel(name string, group bool) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.label(name).group = group
}

// Labels returns the names of the project's labels.
func (p *Project) Labels() []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	var out []string
	for _, l := range p.labels {
		out = append(out, l.name)
	}
	return out
}

// QuickActions returns the lines that GitLab would have executed as commands, such as "/close".
func (p *Project) QuickActions() []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return slices.Clone(p.actions)
}

// level returns the account's role; 0 if it is not a member.
func (p *Project) level(user int) int { return p.members[user] }

// project finds a project by ID or path.
func (s *Server) project(name string) *Project {
	if id, err := strconv.Atoi(name); err == nil {
		return s.projects[id]
	}
	for _, p := range s.projects {
		if strings.EqualFold(p.path, name) || p.oldPath != "" && strings.EqualFold(p.oldPath, name) {
			return p
		}
	}
	return nil
}

func (s *Server) projectObject(p *Project, u *User) object {
	access := any(nil)
	if level := p.level(u.ID); level > 0 {
		access = object{"access_level": level, "notification_level": 3}
	}
	issues := "enabled"
	if p.NoIssues {
		issues = "disabled"
	}
	visibility := "private"
	if p.Public {
		visibility = "public"
	}
	return object{
		"id": p.id, "path_with_namespace": p.path, "name": p.path[strings.LastIndexByte(p.path, '/')+1:],
		"web_url": s.URL + "/" + p.path, "http_url_to_repo": p.Remote(), "default_branch": "main", "archived": p.Archived,
		"issues_enabled": !p.NoIssues, "issues_access_level": issues, "merge_requests_enabled": true, "visibility": visibility,
		"merge_trains_enabled": p.Trains, "permissions": object{"project_access": access, "group_access": nil},
	}
}

// label finds or creates a label.
func (p *Project) label(name string) *label {
	for _, l := range p.labels {
		if l.name == name {
			return l
		}
	}
	l := &label{id: p.s.id(), name: name, color: "#6699cc"}
	p.labels = append(p.labels, l)
	return l
}

func (l *label) object() object {
	return object{
		"id": l.id, "name": l.name, "color": l.color, "text_color": "#FFFFFF", "description": l.description,
		"subscribed": false, "priority": nil, "is_project_label": !l.group,
	}
}

func (s *Server) listLabels(c *call, p *Project) answer {
	search := strings.ToLower(c.query.Get("search"))
	var found []*label
	for _, l := range p.labels {
		if strings.Contains(strings.ToLower(l.name+" "+l.description), search) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b *label) int { return strings.Compare(a.name, b.name) })
	return paged(c, found, (*label).object)
}

func (s *Server) createLabel(c *call, p *Project) answer {
	name, _ := c.body["name"].(string)
	color, _ := c.body["color"].(string)
	switch {
	case p.level(c.user.ID) < Reporter:
		return forbidden()
	case name == "" || color == "":
		return badParameter("name is missing, color is missing")
	case strings.Contains(name, ","):
		return invalid("title", "is invalid")
	case slices.ContainsFunc(p.labels, func(l *label) bool { return l.name == name }):
		return refusal(http.StatusConflict, "Label already exists")
	}
	l := p.label(name)
	l.color = color
	l.description, _ = c.body["description"].(string)
	return created(l.object())
}

// recordActions records the lines of a text that GitLab takes for commands: those outside of fenced blocks that begin with a
// slash and a word.
func (p *Project) recordActions(text string) {
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
		case strings.HasPrefix(line, "```"):
			fence = "```"
		case len(line) > 1 && line[0] == '/' && line[1] >= 'a' && line[1] <= 'z':
			p.actions = append(p.actions, line)
		}
	}
}
