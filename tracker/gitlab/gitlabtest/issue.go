package gitlabtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Issue is an issue to add.
type Issue struct {
	Title        string
	Description  string
	Author       *User
	Labels       []string
	Closed       bool
	Type         string // "issue" unless it is "incident", "task", …
	Weight       int
	Milestone    string
	Assignees    []*User
	Confidential bool
	Created      time.Time // zero: now

	id, iid, author int
	updated         time.Time
	notes           []*note
	events          []*labelEvent
	links           []issueLink
	writes          int // through the API
}

type note struct {
	id       int
	author   int
	body     string
	system   bool
	internal bool
	created  time.Time
	updated  time.Time
}

type labelEvent struct {
	id     int
	user   int
	label  *label
	action string
	at     time.Time
}

// issueLink says that another issue blocks this one, or the other way about.
type issueLink struct {
	project *Project
	issue   *Issue
	kind    string // "is_blocked_by", "blocks", "relates_to"
}

// AddIssue makes an issue and returns its number. Labels are put on by its author.
func (p *Project) AddIssue(i Issue) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i.id, i.iid = p.s.id(), len(p.issues)+1
	if i.Author != nil {
		i.author = i.Author.ID
	}
	at := p.s.now()
	if i.Created.IsZero() {
		i.Created = at
	}
	i.updated = at
	names := i.Labels
	i.Labels = nil
	p.issues = append(p.issues, &i)
	for _, name := range names {
		p.mark(&i, i.author, name, true)
	}
	return i.iid
}

func (p *Project) issue(iid int) *Issue {
	if iid < 1 || iid > len(p.issues) {
		return nil
	}
	return p.issues[iid-1]
}

// mark puts a label on or takes it off, and keeps the event.
func (p *Project) mark(i *Issue, user int, name string, on bool) {
	has := slices.Contains(i.Labels, name)
	if has == on {
		return
	}
	action := "remove"
	if on {
		action = "add"
		i.Labels = append(i.Labels, name)
		slices.Sort(i.Labels)
	} else {
		i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == name })
	}
	e := &labelEvent{id: p.s.id(), user: user, label: p.label(name), action: action, at: p.s.now()}
	i.events = append(i.events, e)
	i.updated = e.at
}

// Label puts a label on an issue, as somebody.
func (p *Project) Label(by *User, iid int, name string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.mark(p.issue(iid), by.ID, name, true)
}

// Unlabel takes a label off.
func (p *Project) Unlabel(by *User, iid int, name string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.mark(p.issue(iid), by.ID, name, false)
}

// Close closes an issue.
func (p *Project) Close(iid int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.Closed, i.updated = true, p.s.now()
}

// Describe edits an issue's description. When a task in it is ticked too, GitLab tells of the task only.
func (p *Project) Describe(by *User, iid int, text string, ticked bool) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.Description = text
	said := "changed the description"
	if ticked {
		said = "marked the checklist item **one** as completed"
	}
	p.say(i, by.ID, said, true)
}

// Rename edits an issue's title.
func (p *Project) Rename(by *User, iid int, title string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	was := i.Title
	i.Title = title
	p.say(i, by.ID, fmt.Sprintf("changed title from **%s** to **%s**", was, title), true)
}

// Comment says something on an issue and returns the note's id. A system note tells of what somebody did.
func (p *Project) Comment(by *User, iid int, body string, system bool) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.say(p.issue(iid), by.ID, body, system).id
}

func (p *Project) say(i *Issue, user int, body string, system bool) *note {
	at := p.s.now()
	n := &note{id: p.s.id(), author: user, body: body, system: system, created: at, updated: at}
	i.notes = append(i.notes, n)
	i.updated = at
	return n
}

// Block makes one issue block another.
func (p *Project) Block(blocker, blocked int) { p.BlockFrom(p, blocker, blocked) }

// BlockFrom makes an issue of another project block one of this.
func (p *Project) BlockFrom(other *Project, blocker, blocked int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	a, b := other.issue(blocker), p.issue(blocked)
	a.links = append(a.links, issueLink{p, b, "blocks"})
	b.links = append(b.links, issueLink{other, a, "is_blocked_by"})
}

// Notes are the texts that an account wrote on an issue, oldest first.
func (p *Project) Notes(by *User, iid int) []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	var out []string
	for _, n := range p.issue(iid).notes {
		if n.author == by.ID && !n.system {
			out = append(out, n.body)
		}
	}
	return out
}

// IssueLabels are the labels on an issue.
func (p *Project) IssueLabels(iid int) []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return slices.Clone(p.issue(iid).Labels)
}

// Writes counts the writes through the API that reached an issue.
func (p *Project) Writes(iid int) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.issue(iid).writes
}

func (i *Issue) state() string {
	if i.Closed {
		return "closed"
	}
	return "opened"
}

func (s *Server) issueObject(p *Project, i *Issue) object {
	o := object{
		"id": i.id, "iid": i.iid, "project_id": p.id, "title": i.Title, "description": i.Description, "state": i.state(),
		"created_at": stamp(i.Created), "updated_at": stamp(i.updated), "closed_at": nil, "labels": slices.Clone(i.Labels),
		"milestone": nil, "assignees": []any{}, "author": s.basic(i.author), "type": "ISSUE", "user_notes_count": i.said(),
		"merge_requests_count": len(p.closing(i)), "upvotes": 0, "downvotes": 0, "due_date": nil, "confidential": i.Confidential,
		"discussion_locked": nil, "issue_type": cmp.Or(i.Type, "issue"), "severity": "UNKNOWN",
		"web_url":               fmt.Sprintf("%s/%s/-/issues/%d", s.URL, p.path, i.iid),
		"blocking_issues_count": i.blocking(), "has_tasks": false, "weight": nil, "moved_to_id": nil, "subscribed": false,
		"references": object{"short": fmt.Sprintf("#%d", i.iid), "relative": fmt.Sprintf("#%d", i.iid), "full": fmt.Sprintf("%s#%d", p.path, i.iid)},
	}
	if i.Labels == nil {
		o["labels"] = []string{}
	}
	if i.Weight != 0 {
		o["weight"] = i.Weight
	}
	if i.Milestone != "" {
		o["milestone"] = object{"id": 1, "title": i.Milestone, "state": "active"}
	}
	var who []any
	for _, u := range i.Assignees {
		who = append(who, s.basic(u.ID))
	}
	if who != nil {
		o["assignees"] = who
	}
	return o
}

func (i *Issue) said() (n int) {
	for _, x := range i.notes {
		if !x.system {
			n++
		}
	}
	return n
}

// blocking counts the open issues that this one blocks.
func (i *Issue) blocking() (n int) {
	for _, l := range i.links {
		if l.kind == "blocks" && !l.issue.Closed && !i.Closed {
			n++
		}
	}
	return n
}

func (s *Server) listIssues(c *call, p *Project) answer {
	known := []string{"state", "order_by", "sort", "iids[]", "scope", "issue_type"}
	if k, bad := unknownParameter(c, known...); bad {
		return badParameter("%s is invalid", k)
	}
	if p.NoIssues {
		return forbidden()
	}
	var found []*Issue
	for _, i := range p.issues {
		state := c.query.Get("state")
		if (state == "" || state == "all" || state == i.state()) && wanted(c.query["iids[]"], i.iid) {
			found = append(found, i)
		}
	}
	position := func(i *Issue) string { return fmt.Sprintf("%s %012d", stamp(i.Created), i.id) }
	slices.SortFunc(found, func(a, b *Issue) int {
		if c.query.Get("sort") == "asc" {
			return strings.Compare(position(a), position(b))
		}
		return strings.Compare(position(b), position(a))
	})
	show := func(i *Issue) object { return s.issueObject(p, i) }
	if c.query.Get("pagination") == "keyset" && !s.noKeyset && c.query.Get("sort") == "asc" {
		return keyset(c, found, position, show)
	}
	return paged(c, found, show)
}

func wanted(iids []string, iid int) bool {
	return len(iids) == 0 || slices.Contains(iids, strconv.Itoa(iid))
}

func (s *Server) updateIssue(c *call, p *Project, i *Issue) answer {
	if k, bad := unknownParameter(c, "add_labels", "remove_labels", "state_event", "assignee_ids"); bad {
		return badParameter("%s is invalid", k)
	}
	level := p.level(c.user.ID)
	if level < Reporter && c.user.ID != i.author {
		return forbidden()
	}
	i.writes++
	if level >= Reporter { // of others GitLab ignores labels without a word
		for _, name := range names(c.body["add_labels"]) {
			p.mark(i, c.user.ID, name, true)
		}
		for _, name := range names(c.body["remove_labels"]) {
			p.mark(i, c.user.ID, name, false)
		}
	}
	if c.body["state_event"] == "close" && !i.Closed {
		i.Closed, i.updated = true, s.now()
	}
	return ok(s.issueObject(p, i))
}

// names reads a list of label names, which the API takes with commas.
func names(v any) []string {
	text, _ := v.(string)
	var out []string
	for n := range strings.SplitSeq(text, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

func (s *Server) labelEvents(c *call, i *Issue) answer {
	return paged(c, i.events, func(e *labelEvent) object {
		o := object{
			"id": e.id, "user": s.basic(e.user), "created_at": stamp(e.at), "resource_type": "Issue", "resource_id": i.id,
			"label": nil, "action": e.action,
		}
		if e.label != nil {
			o["label"] = object{"id": e.label.id, "name": e.label.name, "color": e.label.color, "description": e.label.description}
		}
		return o
	})
}

func (s *Server) links(i *Issue) answer {
	out := []object{}
	for n, l := range i.links {
		o := s.issueObject(l.project, l.issue)
		o["issue_link_id"], o["link_type"] = n+1, l.kind
		o["link_created_at"], o["link_updated_at"] = stamp(i.Created), stamp(i.Created)
		out = append(out, o)
	}
	return ok(out)
}

func (s *Server) listNotes(c *call, p *Project, i *Issue) answer {
	if k, bad := unknownParameter(c, "order_by", "sort", "activity_filter"); bad {
		return badParameter("%s is invalid", k)
	}
	found := slices.Clone(i.notes)
	if c.query.Get("sort") != "asc" {
		slices.Reverse(found)
	}
	return paged(c, found, func(n *note) object { return s.noteObject(p, i, n) })
}

func (s *Server) noteObject(p *Project, i *Issue, n *note) object {
	return object{
		"id": n.id, "type": nil, "body": n.body, "author": s.basic(n.author), "created_at": stamp(n.created),
		"updated_at": stamp(n.updated), "system": n.system, "project_id": p.id,
		"noteable_id": i.id, "noteable_iid": i.iid, "noteable_type": "Issue", //nolint:misspell // GitLab's own word
		"resolvable": false, "confidential": n.internal, "internal": n.internal, "imported": false, "imported_from": "none",
		"commands_changes": object{},
	}
}

const maxNote = 1000000

func (s *Server) createNote(c *call, p *Project, i *Issue) answer {
	if k, bad := unknownParameter(c, "body", "internal", "confidential", "created_at"); bad {
		return badParameter("%s is invalid", k)
	}
	body, _ := c.body["body"].(string)
	switch {
	case p.level(c.user.ID) == 0 && p.Private:
		return notFound("Issue")
	case body == "":
		return badParameter("body is missing")
	case len([]rune(body)) > maxNote:
		return refusal(http.StatusBadRequest, "400 Bad request - Note is too long (maximum is 1000000 characters)")
	}
	i.writes++
	p.act(body)
	return created(s.noteObject(p, i, p.say(i, c.user.ID, body, false)))
}

func (s *Server) updateNote(c *call, p *Project, i *Issue, id int) answer {
	if k, bad := unknownParameter(c, "body"); bad {
		return badParameter("%s is invalid", k)
	}
	body, _ := c.body["body"].(string)
	for _, n := range i.notes {
		if n.id != id {
			continue
		}
		if n.author != c.user.ID && p.level(c.user.ID) < Maintainer {
			return forbidden()
		}
		i.writes++
		p.act(body)
		n.body, n.updated = body, s.now()
		i.updated = n.updated
		return ok(s.noteObject(p, i, n))
	}
	return notFound("Note")
}

// DeleteNote removes a note.
func (p *Project) DeleteNote(iid, id int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.notes = slices.DeleteFunc(i.notes, func(n *note) bool { return n.id == id })
}
