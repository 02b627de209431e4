package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// projectID is GitHub's ID of the project, to which redirects point after the project was renamed.
const projectID = "1296269"

// otherProjectID is the ID of the project that issues are transferred to.
const otherProjectID = "7"

// Rename gives the project another name, OWNER/NAME. The old name redirects.
func (s *Server) Rename(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
}

// SetPermission sets an account's permission in the project. With "none" a private project does not exist for it.
func (s *Server) SetPermission(login, permission string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[strings.ToLower(login)].Permission = permission
}

// redirect answers like GitHub for a renamed project. A write gets status 307, since it must not become a read.
func (q *request) redirect(to string) reply {
	status := http.StatusMovedPermanently
	if q.method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	if len(q.query) > 0 {
		to += "?" + q.query.Encode()
	}
	a := refuse(status, "Moved Permanently")
	a.body.(map[string]any)["url"] = q.URL + api + to
	a.header = http.Header{"Location": {q.URL + api + to}}
	return a
}

// transferred answers for an issue that was transferred to another project.
func (q *request) transferred(i *Issue, rest []string) reply {
	if i.Unseen {
		return refuse(http.StatusNotFound, "Not Found")
	}
	a := q.redirect(strings.TrimSuffix(fmt.Sprintf("/repositories/%s/issues/%d/%s", otherProjectID, i.Number+100, strings.Join(rest, "/")), "/"))
	a.status = http.StatusMovedPermanently // for every method
	return a
}

// routeOther answers for the project that issues are transferred to. It allows no writes.
func (q *request) routeOther(parts []string) reply {
	if q.method != http.MethodGet {
		q.t.Errorf("githubtest: %s of an issue that was transferred to another project", q.method)
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	}
	n := 0
	if len(parts) > 1 && parts[0] == "issues" {
		n, _ = strconv.Atoi(parts[1])
	}
	if n -= 100; n < 1 || n > len(q.issues) || q.issues[n-1].Moved == "" {
		return refuse(http.StatusNotFound, "Not Found")
	}
	i := *q.issues[n-1]
	if len(parts) > 2 {
		return q.routeIssue(&i, parts[1:])
	}
	out := q.issueObject(&i)
	home := q.URL + api + "/repos/" + i.Moved
	out["number"], out["repository_url"], out["url"] = i.Number+100, home, fmt.Sprintf("%s/issues/%d", home, i.Number+100)
	return ok(out)
}
