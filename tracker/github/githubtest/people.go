package githubtest

import (
	"net/http"
	"slices"
	"strings"
)

// account returns a user in the form of GitHub's users API.
func (s *Server) account(login string) map[string]any {
	u := s.users[strings.ToLower(login)]
	if u == nil {
		return nil
	}
	out := s.desc.object("public-user-default-response")
	for k := range out {
		if k == "name" || k == "email" || k == "company" || k == "bio" || k == "blog" || k == "location" || k == "twitter_username" {
			out[k] = nil
		}
	}
	out["login"], out["id"], out["type"] = u.Login, u.ID, "User"
	out["blog"], out["user_view_type"] = "", "public"
	if u.Bot {
		out["type"] = "Bot"
	}
	return out
}

// embeddedUser returns an account as part of another object; nil for a deleted account.
func (s *Server) embeddedUser(login string) any {
	u := s.account(login)
	if u == nil {
		return nil
	}
	out := map[string]any{}
	for k, v := range u {
		if k == "login" || k == "id" || k == "node_id" || k == "gravatar_id" || k == "type" || k == "site_admin" || strings.HasSuffix(k, "url") {
			out[k] = v
		}
	}
	return out
}

func (q *request) user(parts []string) reply {
	login := q.access.Login
	if len(parts) > 1 {
		login = parts[1]
	} else if u := q.users[strings.ToLower(login)]; u == nil || strings.HasSuffix(login, "[bot]") && q.app != nil {
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	u := q.account(login)
	if u == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	return ok(u)
}

// collaborators lists people with at least the requested permission. It omits bots of apps.
func (q *request) collaborators() reply {
	if !q.hasPermission(q.access, "write") {
		return refuse(http.StatusForbidden, "Must have push access to view repository collaborators.")
	}
	least := map[string]string{"": "read", "pull": "read", "triage": "write", "push": "write", "maintain": "admin", "admin": "admin"}
	var found []*User
	for _, u := range q.users {
		if !u.Bot && rank(u.Permission) >= rank(least[q.query.Get("permission")]) {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *User) int { return int(a.ID - b.ID) })
	return page(q, found, func(u *User) map[string]any {
		out, _ := q.embeddedUser(u.Login).(map[string]any)
		write := rank(u.Permission) >= rank("write")
		admin := u.Permission == "admin"
		out["permissions"] = map[string]any{"pull": true, "triage": write, "push": write, "maintain": admin, "admin": admin}
		out["role_name"] = u.Permission
		return out
	})
}

// rank orders permissions.
func rank(permission string) int {
	return slices.Index([]string{"none", "read", "write", "admin"}, permission)
}

func (q *request) permission(login string) reply {
	u := q.users[strings.ToLower(login)]
	if u == nil {
		return refuse(http.StatusNotFound, login+" is not a user")
	}
	who, _ := q.embeddedUser(login).(map[string]any)
	who["role_name"] = u.Permission
	return ok(map[string]any{"permission": u.Permission, "role_name": u.Permission, "user": who})
}

func (q *request) repository() reply {
	out := q.desc.object("full-repository-default-response")
	for _, k := range []string{"source", "parent", "template_repository"} {
		delete(out, k)
	}
	write := q.hasPermission(q.access, "write")
	permissions := map[string]any{
		"admin": q.hasPermission(q.access, "admin"), "push": write, "pull": true, "triage": write, "maintain": false,
	}
	out["language"] = nil
	_, name, _ := strings.Cut(q.name, "/")
	out["name"], out["full_name"], out["permissions"] = name, q.name, permissions
	out["private"], out["archived"], out["has_issues"] = q.repo.private, q.repo.archived, !q.repo.noIssues
	a := reply{status: http.StatusOK, body: out, header: http.Header{}}
	if q.access.Scopes != nil {
		a.header["X-Oauth-Scopes"] = []string{*q.access.Scopes}
	}
	if !q.access.Ends.IsZero() {
		a.header.Set("GitHub-Authentication-Token-Expiration", q.access.Ends.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return a
}
