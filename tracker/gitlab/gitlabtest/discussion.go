package gitlabtest

import (
	"fmt"
	"slices"
)

type thread struct {
	id         string
	individual bool
	notes      []*note
}

// Thread is a new discussion on a merge request.
type Thread struct {
	By         *User
	Body       string
	Resolvable bool
	Resolved   bool
	System     bool
	Path       string // for a diff note
	Line       int
}

// Discuss starts a discussion and returns its ID.
func (p *Project) Discuss(iid int, t Thread) string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	n := p.newNote(t.By.ID, t.Body)
	n.resolvable, n.resolved, n.system, n.path, n.line = t.Resolvable, t.Resolved, t.System, t.Path, t.Line
	d := &thread{id: fmt.Sprintf("%040x", p.s.id()), individual: !t.Resolvable, notes: []*note{n}}
	m.threads = append(m.threads, d)
	return d.id
}

func (m *Merge) thread(id string) *thread {
	if at := slices.IndexFunc(m.threads, func(d *thread) bool { return d.id == id }); at >= 0 {
		return m.threads[at]
	}
	return nil
}

func (d *thread) add(n *note) {
	n.resolvable = d.notes[0].resolvable
	d.notes = append(d.notes, n)
}

// Answer adds a note to a discussion and returns its ID.
func (p *Project) Answer(iid int, discussion string, by *User, body string) (id int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	n := p.newNote(by.ID, body)
	p.merge(iid).thread(discussion).add(n)
	return n.id
}

// Said returns the texts in a discussion after the first, oldest first.
func (p *Project) Said(iid int, discussion string) (texts []string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, n := range p.merge(iid).thread(discussion).notes[1:] {
		texts = append(texts, n.body)
	}
	return texts
}

// notes returns all notes, oldest first.
func (m *Merge) notes() (all []*note) {
	for _, d := range m.threads {
		all = append(all, d.notes...)
	}
	slices.SortFunc(all, func(a, b *note) int { return a.id - b.id })
	return all
}

func (s *Server) discussions(c *call, p *Project, m *Merge) answer {
	x := p.mergeNotes(m)
	return paged(c, m.threads, func(d *thread) object {
		notes := []object{}
		for _, n := range d.notes {
			notes = append(notes, s.noteObject(p, x, n))
		}
		return object{"id": d.id, "individual_note": d.individual, "notes": notes}
	})
}

// answer adds a note to a discussion.
func (s *Server) answer(c *call, p *Project, m *Merge, discussion string) answer {
	d := m.thread(discussion)
	if d == nil {
		return notFound("Discussion")
	}
	return s.writeNote(c, p, p.mergeNotes(m), p.newNote(c.user.ID, ""), d.add)
}
