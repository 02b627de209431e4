package gitlabtest

import (
	"net/http"
	"slices"
	"time"
)

type note struct {
	id       int
	author   int
	body     string
	system   bool
	internal bool
	created  time.Time
	updated  time.Time
}

// Comment adds a note to an issue and returns its id. A system note describes an event.
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
		"resolvable": false, "confidential": n.internal, "internal": n.internal,
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

func (p *Project) deleteNote(c *call, i *Issue, id int) answer {
	at := slices.IndexFunc(i.notes, func(n *note) bool { return n.id == id })
	switch {
	case at < 0:
		return notFound("Note")
	case i.notes[at].author != c.user.ID && p.level(c.user.ID) < Maintainer:
		return forbidden()
	}
	i.writes++
	i.notes = slices.Delete(i.notes, at, at+1)
	return answer{status: http.StatusNoContent, body: []byte{}}
}

// DeleteNotes removes the notes of an account, as a maintainer does.
func (p *Project) DeleteNotes(by *User, iid int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.notes = slices.DeleteFunc(i.notes, func(n *note) bool { return n.author == by.ID })
}
