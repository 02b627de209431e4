package gitlabtest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Roles of a member, as the API's numbers.
const (
	Guest      = 10
	Reporter   = 20
	Developer  = 30
	Maintainer = 40
	Owner      = 50
)

// User is an account of the instance.
type User struct {
	ID       int
	Username string
	Bot      bool   // bot user of a project or group access token
	State    string // "active" by default, or "blocked"
	Admin    bool
}

// token is an access token.
type token struct {
	id      int
	user    *User
	scopes  []string
	expires time.Time
}

// AddUser creates an account.
func (s *Server) AddUser(u User) *User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.ID == 0 {
		u.ID = s.id()
	}
	u.State = cmp.Or(u.State, "active")
	s.users[u.ID] = &u
	return &u
}

// AddToken gives an account a token with scopes.
func (s *Server) AddToken(u *User, secret string, expires time.Time, scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[secret] = &token{id: s.id(), user: u, scopes: scopes, expires: expires}
}

// Revoke revokes a token.
func (s *Server) Revoke(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, secret)
}

func (t *token) object() object {
	o := object{
		"id": t.id, "name": "ralph", "revoked": false, "created_at": stamp(time.Unix(1700000000, 0)), "description": nil,
		"scopes": t.scopes, "user_id": t.user.ID, "last_used_at": nil, "active": true, "expires_at": nil,
	}
	if !t.expires.IsZero() {
		o["expires_at"] = t.expires.Format(time.DateOnly)
	}
	return o
}

// embeddedUser returns an account as part of another object; nil if it was deleted.
func (s *Server) embeddedUser(id int) any {
	u := s.users[id]
	if u == nil {
		return nil
	}
	return s.userObject(u, false)
}

func (s *Server) userObject(u *User, whole bool) object {
	o := object{
		"id": u.ID, "username": u.Username, "name": strings.ToUpper(u.Username[:1]) + u.Username[1:], "state": u.State,
		"locked": false, "avatar_url": nil, "web_url": s.URL + "/" + u.Username,
	}
	if whole {
		o["bot"] = u.Bot
		o["created_at"] = stamp(time.Unix(1600000000, 0))
		if u.Admin {
			o["is_admin"] = true
		}
	}
	return o
}

func (s *Server) oneUser(id string) answer {
	u := s.users[number(id)]
	if u == nil {
		return notFound("User")
	}
	return ok(s.userObject(u, true))
}

func (s *Server) findUsers(c *call) answer {
	var found []*User
	for _, u := range s.users {
		if strings.EqualFold(u.Username, c.query.Get("username")) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *User) int { return a.ID - b.ID })
	return paged(c, found, func(u *User) object { return s.userObject(u, false) })
}

func (s *Server) member(p *Project, id int) answer {
	if s.users[id] == nil || p.level(id) == 0 {
		return refusal(http.StatusNotFound, "404 Not found")
	}
	return ok(s.memberObject(p, id))
}

func (s *Server) listMembers(c *call, p *Project) answer {
	if p.HideMembers {
		return forbidden()
	}
	var found []int
	for id, level := range p.members {
		if s.users[id] != nil && level > 0 {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return paged(c, found, func(id int) object { return s.memberObject(p, id) })
}

func (s *Server) memberObject(p *Project, id int) object {
	u, level := s.users[id], p.level(id)
	o := s.userObject(u, false)
	delete(o, "locked")
	o["access_level"], o["expires_at"] = level, nil
	o["created_at"] = stamp(time.Unix(1650000000, 0))
	return o
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
