package gitlabtest

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// comment is a note on anything, as the list of events shows it.
type comment struct {
	id   int
	user int
	kind string
	at   time.Time
	note object
}

// listEvents lists the comments of the project; ralph asks for no other events.
func (s *Server) listEvents(c *call, p *Project) answer {
	if k, bad := unknownParameter(c, "action", "target_type", "before", "after", "sort"); bad {
		return badParameter("%s is invalid", k)
	}
	after, err := time.Parse(time.DateOnly, c.query.Get("after"))
	if err != nil || c.query.Get("action") != "commented" {
		return badParameter("after is invalid")
	}
	var found []comment
	for _, i := range p.issues {
		for _, n := range i.notes {
			if !n.system && !n.internal {
				found = append(found, comment{n.id, n.author, "Note", n.created, s.noteObject(p, i, n)})
			}
		}
	}
	for _, m := range p.merges {
		for _, n := range m.notes() {
			o := s.threadNoteObject(m, n)
			kind, _ := o["type"].(string)
			if !n.system {
				found = append(found, comment{n.id, n.author, cmp.Or(kind, "Note"), n.at, o})
			}
		}
	}
	found = slices.DeleteFunc(found, func(e comment) bool { return e.at.Before(after) })
	slices.SortFunc(found, func(a, b comment) int {
		if c.query.Get("sort") == "asc" {
			return a.id - b.id
		}
		return b.id - a.id
	})
	return paged(c, found, func(e comment) object {
		name := ""
		if u := s.users[e.user]; u != nil {
			name = u.Username
		}
		return object{
			"id": e.id, "project_id": p.id, "action_name": "commented on", "target_id": e.id, "target_iid": e.id, "target_type": e.kind,
			"author_id": e.user, "target_title": "x", "created_at": stamp(e.at), "note": e.note, "author": s.basic(e.user), "author_username": name,
		}
	})
}

type award struct {
	id, user int
	name     string
	at       time.Time
}

// Awards are the emoji on a note, each as "name by username".
func (p *Project) Awards(note int) (all []string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, a := range p.awarded[note] {
		all = append(all, a.name+" by "+p.s.users[a.user].Username)
	}
	return all
}

// Award puts an emoji on a note.
func (p *Project) Award(by *User, note int, name string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.award(note, by.ID, name)
}

func (p *Project) award(note, user int, name string) *award {
	a := &award{p.s.id(), user, name, p.s.now()}
	p.awarded[note] = append(p.awarded[note], a)
	return a
}

// awards lists the emoji on a note, or adds one. GitLab refuses a second one of the same name as if it did not exist.
func (s *Server) awards(c *call, p *Project, kind string, iid, id int) answer {
	exists := false
	if kind == "issues" {
		exists = slices.ContainsFunc(p.issue(iid).notes, func(n *note) bool { return n.id == id })
	} else {
		exists = slices.ContainsFunc(p.merge(iid).notes(), func(n *threadNote) bool { return n.id == id })
	}
	if !exists {
		return notFound("Note")
	}
	show := func(a *award) object {
		return object{
			"id": a.id, "name": a.name, "user": s.basic(a.user), "created_at": stamp(a.at), "updated_at": stamp(a.at),
			"awardable_id": id, "awardable_type": "Note",
		}
	}
	if c.r.Method == http.MethodGet {
		return paged(c, p.awarded[id], show)
	}
	if k, bad := unknownParameter(c, "name"); bad {
		return badParameter("%s is invalid", k)
	}
	name, _ := c.body["name"].(string)
	switch {
	case name == "":
		return badParameter("name is missing")
	case slices.ContainsFunc(p.awarded[id], func(a *award) bool { return a.user == c.user.ID && a.name == name }):
		return refusal(http.StatusNotFound, "404 Award Emoji Name has already been taken Not Found")
	}
	return created(show(p.award(id, c.user.ID, name)))
}
