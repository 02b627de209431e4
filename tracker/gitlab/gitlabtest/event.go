package gitlabtest

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// listEvents lists the comments of the project; ralph requests no other events.
func (s *Server) listEvents(c *call, p *Project) answer {
	after, err := time.Parse(time.DateOnly, c.query.Get("after"))
	if err != nil || c.query.Get("action") != "commented" {
		return badParameter("after is invalid")
	}
	type comment struct {
		*note
		on noteList
	}
	var found []comment
	collect := func(x noteList) {
		for _, n := range x.list {
			if !n.system && !n.internal && !n.at.Before(after) {
				found = append(found, comment{n, x})
			}
		}
	}
	for _, i := range p.issues {
		collect(p.issueNotes(i))
	}
	for _, m := range p.merges {
		collect(p.mergeNotes(m))
	}
	slices.SortFunc(found, func(a, b comment) int {
		if c.query.Get("sort") == "asc" {
			return a.id - b.id
		}
		return b.id - a.id
	})
	return paged(c, found, func(e comment) object {
		shown, name := s.noteObject(p, e.on, e.note), ""
		kind, _ := shown["type"].(string)
		if u := s.users[e.author]; u != nil {
			name = u.Username
		}
		return object{
			"id":              e.id,
			"project_id":      p.id,
			"action_name":     "commented on",
			"target_id":       e.id,
			"target_iid":      e.id,
			"target_type":     cmp.Or(kind, "Note"),
			"author_id":       e.author,
			"target_title":    "x",
			"created_at":      stamp(e.at),
			"note":            shown,
			"author":          s.embeddedUser(e.author),
			"author_username": name,
		}
	})
}

type award struct {
	id, user int
	name     string
	at       time.Time
}

// Awards returns the emoji on a note, each as "name by username".
func (p *Project) Awards(note int) (all []string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, a := range p.awarded[note] {
		all = append(all, a.name+" by "+p.s.users[a.user].Username)
	}
	return all
}

// Award adds an emoji to a note.
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

// awards lists the emoji on a note, or adds one. GitLab answers "not found" to a second one of the same name.
func (s *Server) awards(c *call, p *Project, id int) answer {
	show := func(a *award) object {
		return object{
			"id": a.id, "name": a.name, "user": s.embeddedUser(a.user), "created_at": stamp(a.at), "updated_at": stamp(a.at),
			"awardable_id": id, "awardable_type": "Note",
		}
	}
	if c.r.Method == http.MethodGet {
		return paged(c, p.awarded[id], show)
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
