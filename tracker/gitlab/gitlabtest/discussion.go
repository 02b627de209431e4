package gitlabtest

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

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

// Thread is a new discussion on a merge request.
type Thread struct {
	By         *User
	Body       string
	Resolvable bool
	Resolved   bool
	System     bool
	Path       string // of a diff note
	Line       int
}

// Discuss starts a discussion and returns its id.
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

// Answer adds a note to a discussion, and returns its id.
func (p *Project) Answer(iid int, discussion string, by *User, body string) (id int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, d := range p.merge(iid).threads {
		if d.id == discussion {
			id = p.s.id()
			d.notes = append(d.notes, &threadNote{id: id, author: by.ID, body: body, at: p.s.now(), resolvable: d.notes[0].resolvable})
		}
	}
	return id
}

// Said are the texts in a discussion after the first, oldest first.
func (p *Project) Said(iid int, discussion string) (texts []string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, d := range p.merge(iid).threads {
		if d.id == discussion {
			for _, n := range d.notes[1:] {
				texts = append(texts, n.body)
			}
		}
	}
	return texts
}

// NoteOn adds a note to a merge request that is in no discussion, and returns its id.
func (p *Project) NoteOn(iid int, by *User, body string) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.noteOn(p.merge(iid), by.ID, body).id
}

func (p *Project) noteOn(m *Merge, user int, body string) *threadNote {
	n := &threadNote{id: p.s.id(), author: user, body: body, at: p.s.now()}
	m.threads = append(m.threads, &thread{id: fmt.Sprintf("%040x", p.s.id()), alone: true, notes: []*threadNote{n}})
	return n
}

// MergeNotes are the texts that an account wrote on a merge request, oldest first.
func (p *Project) MergeNotes(by *User, iid int) (texts []string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, n := range p.merge(iid).notes() {
		if n.author == by.ID && !n.system {
			texts = append(texts, n.body)
		}
	}
	return texts
}

// notes are all notes, oldest first.
func (m *Merge) notes() (all []*threadNote) {
	for _, d := range m.threads {
		all = append(all, d.notes...)
	}
	slices.SortFunc(all, func(a, b *threadNote) int { return a.id - b.id })
	return all
}

func (s *Server) discussions(c *call, m *Merge) answer {
	return paged(c, m.threads, func(d *thread) object {
		notes := []object{}
		for _, n := range d.notes {
			notes = append(notes, s.threadNoteObject(m, n))
		}
		return object{"id": d.id, "individual_note": d.alone, "notes": notes}
	})
}

func (s *Server) threadNoteObject(m *Merge, n *threadNote) object {
	o := object{
		"id": n.id, "type": nil, "body": n.body, "author": s.basic(n.author), "created_at": stamp(n.at),
		"noteable_type": "MergeRequest", "noteable_iid": m.IID, "noteable_id": m.id, //nolint:misspell // GitLab's own word
		"updated_at": stamp(n.at), "system": n.system, "resolvable": n.resolvable, "confidential": false, "internal": false,
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

func (s *Server) mergeNotes(c *call, m *Merge) answer {
	if k, bad := unknownParameter(c, "order_by", "sort"); bad {
		return badParameter("%s is invalid", k)
	}
	found := m.notes()
	if c.query.Get("sort") != "asc" {
		slices.Reverse(found)
	}
	return paged(c, found, func(n *threadNote) object { return s.threadNoteObject(m, n) })
}

// written reads the text of a new note.
func (p *Project) written(c *call) (string, *answer) {
	if k, bad := unknownParameter(c, "body"); bad {
		a := badParameter("%s is invalid", k)
		return "", &a
	}
	body, _ := c.body["body"].(string)
	if body == "" {
		a := badParameter("body is missing")
		return "", &a
	}
	p.act(body)
	return body, nil
}

func (s *Server) createMergeNote(c *call, p *Project, m *Merge) answer {
	body, bad := p.written(c)
	if bad != nil {
		return *bad
	}
	return created(s.threadNoteObject(m, p.noteOn(m, c.user.ID, body)))
}

func (p *Project) deleteMergeNote(c *call, m *Merge, id int) answer {
	for n, d := range m.threads {
		if d.notes[0].id != id {
			continue
		}
		if d.notes[0].author != c.user.ID && p.level(c.user.ID) < Maintainer {
			return forbidden()
		}
		m.threads = slices.Delete(m.threads, n, n+1)
		return answer{status: http.StatusNoContent, body: []byte{}}
	}
	return notFound("Note")
}

// answer adds a note to a discussion.
func (s *Server) answer(c *call, p *Project, m *Merge, discussion string) answer {
	for _, d := range m.threads {
		if d.id != discussion {
			continue
		}
		body, bad := p.written(c)
		if bad != nil {
			return *bad
		}
		n := &threadNote{id: s.id(), author: c.user.ID, body: body, at: s.now(), resolvable: d.notes[0].resolvable}
		d.notes = append(d.notes, n)
		return created(s.threadNoteObject(m, n))
	}
	return notFound("Discussion")
}
