package gitlabtest

import (
	"fmt"
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
