package gitlabtest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// note is a text on an issue or a merge request.
type note struct {
	id, author           int
	body                 string
	at, updated          time.Time
	system, internal     bool
	resolvable, resolved bool
	path                 string // for a diff note
	line                 int
}

func (p *Project) newNote(user int, body string) *note {
	at := p.s.now()
	return &note{id: p.s.id(), author: user, body: body, at: at, updated: at}
}

// noteList is the list of notes of an issue or a merge request.
type noteList struct {
	kind       string // type of the object in answers
	iid, id    int
	list       []*note // oldest first
	add        func(*note)
	remove     func(*note)
	afterWrite func() // called after writes through the API
}

func (p *Project) issueNotes(i *Issue) noteList {
	return noteList{
		kind: "Issue", iid: i.iid, id: i.id, list: slices.Clone(i.notes),
		add:        func(n *note) { i.notes, i.updated = append(i.notes, n), n.at },
		remove:     func(n *note) { i.notes = slices.DeleteFunc(i.notes, func(o *note) bool { return o == n }) },
		afterWrite: func() { i.writes, i.updated = i.writes+1, p.s.now() },
	}
}

func (p *Project) mergeNotes(m *Merge) noteList {
	return noteList{
		kind: "MergeRequest", iid: m.IID, id: m.id, list: m.notes(),
		add: func(n *note) {
			m.threads = append(m.threads, &thread{id: fmt.Sprintf("%040x", p.s.id()), individual: true, notes: []*note{n}})
		},
		remove: func(n *note) {
			m.threads = slices.DeleteFunc(m.threads, func(d *thread) bool { return d.notes[0] == n })
		},
		afterWrite: func() {},
	}
}

// textsBy returns the texts of an account, oldest first.
func (x noteList) textsBy(u *User) (texts []string) {
	for _, n := range x.list {
		if n.author == u.ID && !n.system {
			texts = append(texts, n.body)
		}
	}
	return texts
}

// Comment adds a note to an issue and returns its ID. A system note describes an event.
func (p *Project) Comment(by *User, iid int, body string, system bool) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.addNote(p.issue(iid), by.ID, body, system).id
}

func (p *Project) addNote(i *Issue, user int, body string, system bool) *note {
	n := p.newNote(user, body)
	n.system = system
	p.issueNotes(i).add(n)
	return n
}

// Notes returns an account's texts on an issue, oldest first.
func (p *Project) Notes(by *User, iid int) []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.issueNotes(p.issue(iid)).textsBy(by)
}

// DeleteNotes deletes an account's notes on an issue, like a maintainer.
func (p *Project) DeleteNotes(by *User, iid int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.notes = slices.DeleteFunc(i.notes, func(n *note) bool { return n.author == by.ID })
}

// NoteOn adds a note outside of discussions to a merge request, and returns its ID.
func (p *Project) NoteOn(iid int, by *User, body string) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	n := p.newNote(by.ID, body)
	p.mergeNotes(p.merge(iid)).add(n)
	return n.id
}

// MergeNotes returns an account's texts on a merge request, oldest first.
func (p *Project) MergeNotes(by *User, iid int) []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.mergeNotes(p.merge(iid)).textsBy(by)
}

func (s *Server) noteObject(p *Project, x noteList, n *note) object {
	o := object{
		"id": n.id, "type": nil, "body": n.body, "author": s.embeddedUser(n.author), "created_at": stamp(n.at),
		"updated_at": stamp(n.updated), "system": n.system, "project_id": p.id,
		"noteable_id": x.id, "noteable_iid": x.iid, "noteable_type": x.kind, //nolint:misspell // GitLab's own word
		"resolvable": n.resolvable, "confidential": n.internal, "internal": n.internal,
	}
	if n.resolvable {
		o["type"], o["resolved"], o["resolved_by"] = "DiscussionNote", n.resolved, nil
	}
	if n.path != "" {
		o["type"] = "DiffNote"
		o["position"] = object{"new_path": n.path, "old_path": n.path, "new_line": n.line, "old_line": nil, "position_type": "text"}
	}
	return o
}

const maxNote = 1000000

// routeNotes answers calls about the notes of an issue or merge request.
func (s *Server) routeNotes(c *call, p *Project, x noteList, kind string, rest []string) answer {
	switch kind {
	case "GET /notes":
		if c.query.Get("sort") != "asc" {
			slices.Reverse(x.list)
		}
		return paged(c, x.list, func(n *note) object { return s.noteObject(p, x, n) })
	case "POST /notes":
		return s.writeNote(c, p, x, p.newNote(c.user.ID, ""), x.add)
	}
	if len(rest) < 3 || rest[1] != "notes" {
		return noRoute()
	}
	at := slices.IndexFunc(x.list, func(n *note) bool { return n.id == number(rest[2]) })
	switch {
	case at < 0:
		return notFound("Note")
	case kind == "GET /notes/#/award_emoji" || kind == "POST /notes/#/award_emoji":
		return s.awards(c, p, x.list[at].id)
	case x.list[at].author != c.user.ID && p.level(c.user.ID) < Maintainer:
		return forbidden()
	case kind == "PUT /notes/#":
		return s.writeNote(c, p, x, x.list[at], func(*note) {})
	}
	x.afterWrite()
	x.remove(x.list[at])
	return answer{status: http.StatusNoContent, body: []byte{}}
}

// writeNote sets the text of a note from a call, and calls put to store it.
func (s *Server) writeNote(c *call, p *Project, x noteList, n *note, store func(*note)) answer {
	body, _ := c.body["body"].(string)
	switch {
	case body == "":
		return badParameter("body is missing")
	case len([]rune(body)) > maxNote:
		return refusal(http.StatusBadRequest, "400 Bad request - Note is too long (maximum is 1000000 characters)")
	}
	p.recordActions(body)
	n.body = body
	store(n)
	x.afterWrite()
	if c.r.Method == http.MethodPut {
		n.updated = s.now()
		return ok(s.noteObject(p, x, n))
	}
	return created(s.noteObject(p, x, n))
}
