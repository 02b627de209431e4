package githubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// issueObject renders an issue.
func (s *Server) issueObject(i *Issue) map[string]any {
	out := s.desc.object("issue")
	for _, k := range []string{"pinned_comment", "active_lock_reason", "closed_by"} {
		delete(out, k)
	}
	home := s.URL + api + "/repos/" + s.name
	out["number"], out["id"], out["title"], out["body"] = i.Number, i.ID, i.Title, i.Body
	if i.Body == "" {
		out["body"] = nil
	}
	out["repository_url"], out["url"] = home, fmt.Sprintf("%s/issues/%d", home, i.Number)
	out["html_url"], out["locked"] = fmt.Sprintf("%s/%s/issues/%d", s.URL, s.name, i.Number), i.Locked || i.Converted
	out["user"], out["assignee"], out["assignees"] = s.embeddedUser(i.Author), nil, s.accounts(i.Assignees)
	out["state"], out["closed_at"], out["state_reason"] = "open", nil, nil
	if i.Closed {
		out["state"], out["closed_at"], out["state_reason"] = "closed", stamp(i.Updated), "completed"
	}
	out["labels"], out["milestone"] = s.showLabels(i.Labels), nil
	if i.Milestone != "" {
		m := s.desc.object("issue")["milestone"].(map[string]any)
		m["title"] = i.Milestone
		out["milestone"] = m
	}
	out["comments"] = len(i.Comments)
	out["created_at"], out["updated_at"] = stamp(i.Created), stamp(i.Updated)
	open := func(numbers []int) (n int) {
		for _, b := range numbers {
			if !s.issues[b-1].Closed {
				n++
			}
		}
		return n
	}
	out["issue_dependencies_summary"] = map[string]any{
		"blocked_by":       open(i.BlockedBy),
		"total_blocked_by": len(i.BlockedBy),
		"blocking":         0,
		"total_blocking":   0,
	}
	done := len(i.SubIssues) - open(i.SubIssues)
	out["sub_issues_summary"] = map[string]any{"total": len(i.SubIssues), "completed": done, "percent_completed": 0}
	if i.Pull == nil {
		delete(out, "pull_request")
	} else {
		out["pull_request"] = map[string]any{"url": home, "html_url": out["html_url"], "diff_url": home, "patch_url": home}
	}
	return out
}

func (s *Server) accounts(logins []string) []any {
	out := []any{}
	for _, l := range logins {
		out = append(out, s.embeddedUser(l))
	}
	return out
}

func (s *Server) showLabels(names []string) []any {
	out := []any{}
	for _, l := range names {
		out = append(out, s.showLabel(l))
	}
	return out
}

func (s *Server) showLabel(name string) map[string]any {
	out := s.desc.object("label")
	out["name"], out["description"] = name, ""
	return out
}

func (q *request) issuesPath(parts []string) reply {
	if len(parts) == 0 {
		return page(q, q.filtered(), q.issueObject)
	}
	if parts[0] == "comments" {
		if len(parts) == 1 {
			return q.allComments()
		}
		return q.comment(parts[1])
	}
	n, _ := strconv.Atoi(parts[0])
	if n < 1 || n > len(q.issues) {
		return refuse(http.StatusNotFound, "Not Found")
	}
	i := q.issues[n-1]
	switch {
	case i.Deleted:
		return refuse(http.StatusGone, "This issue was deleted")
	case q.repo.noIssues && i.Pull == nil:
		return refuse(http.StatusGone, "Issues are disabled for this repo")
	case i.Moved != "":
		return q.transferred(i, parts[1:])
	case len(parts) == 1:
		return q.issue(i)
	}
	return q.routeIssue(i, parts)
}

// routeIssue answers calls about a part of an issue.
func (q *request) routeIssue(i *Issue, parts []string) reply {
	switch strings.Join(parts[1:min(len(parts), 3)], "/") {
	case "comments":
		return q.comments(i)
	case "labels":
		return q.label(i, q.list("labels"))
	case "assignees":
		return q.assign(i)
	case "events":
		return page(q, i.Events, q.showEvent)
	case "dependencies/blocked_by":
		return page(q, q.issuesByNumber(i.BlockedBy), q.issueObject)
	case "sub_issues":
		return page(q, q.issuesByNumber(i.SubIssues), q.issueObject)
	}
	return q.unlabel(i, parts[2])
}

func (q *request) issuesByNumber(numbers []int) (out []*Issue) {
	for _, n := range numbers {
		out = append(out, q.issues[n-1])
	}
	return out
}

// filtered applies the query of a listing, which includes pull requests.
func (q *request) filtered() (out []*Issue) {
	state := q.query.Get("state")
	for _, i := range q.issues {
		fits := !i.Deleted && i.Moved == "" && (i.Pull != nil || !q.repo.noIssues) && (state == "all" || i.Closed == (state == "closed"))
		for l := range strings.SplitSeq(q.query.Get("labels"), ",") {
			fits = fits && (l == "" || slices.ContainsFunc(i.Labels, func(o string) bool { return strings.EqualFold(o, l) }))
		}
		if a := q.query.Get("assignee"); a != "" {
			fits = fits && slices.ContainsFunc(i.Assignees, func(of string) bool { return strings.EqualFold(of, a) })
		}
		if fits {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b *Issue) int {
		if q.query.Get("direction") == "asc" {
			return a.Created.Compare(b.Created)
		}
		return b.Created.Compare(a.Created)
	})
	return out
}

func (q *request) issue(i *Issue) reply {
	if q.method == http.MethodPatch {
		if v, ok := q.body["title"].(string); ok && strings.TrimSpace(v) == "" {
			return blankTitle()
		}
		i.Updated = q.now()
		if q.text("state") != "" {
			i.Closed = q.text("state") == "closed"
		}
	}
	return ok(q.issueObject(i))
}

func (q *request) comments(i *Issue) reply {
	if q.method == http.MethodGet {
		return page(q, i.Comments, func(c *Comment) map[string]any { return q.showComment(i, c) })
	}
	if i.Converted || i.Locked && !q.hasPermission(q.access, "write") {
		return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	if n := len(q.text("body")); n == 0 || n > 65536 {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed: body is too long (maximum is 65536 characters)")
	}
	return reply{status: http.StatusCreated, body: q.showComment(i, q.addComment(i, q.access.Login, q.text("body")))}
}

// allComments returns the comments on all issues and pull requests.
func (q *request) allComments() reply {
	type commentOn struct {
		on *Issue
		*Comment
	}
	var all []commentOn
	since, _ := time.Parse(time.RFC3339, q.query.Get("since"))
	for _, i := range q.issues {
		for _, c := range i.Comments {
			if !i.Deleted && i.Moved == "" && !c.Updated.Before(since) {
				all = append(all, commentOn{i, c})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b commentOn) int {
		if q.query.Get("sort") == "updated" && q.query.Get("direction") != "asc" {
			return b.Updated.Compare(a.Updated)
		}
		return a.Created.Compare(b.Created)
	})
	return page(q, all, func(s commentOn) map[string]any { return q.showComment(s.on, s.Comment) })
}

func (s *Server) showComment(i *Issue, c *Comment) map[string]any {
	out := s.desc.object("issue-comment-items")
	delete(out, "pin")
	kind := "issues"
	if i.Pull != nil {
		kind = "pull"
	}
	out["issue_url"] = fmt.Sprintf("%s%s/repos/%s/issues/%d", s.URL, api, s.name, i.Number)
	out["html_url"] = fmt.Sprintf("%s/%s/%s/%d#issuecomment-%d", s.URL, s.name, kind, i.Number, c.ID)
	out["id"], out["node_id"], out["body"], out["user"] = c.ID, c.NodeID(), c.Body, s.embeddedUser(c.Author)
	out["created_at"], out["updated_at"] = stamp(c.Created), stamp(c.Updated)
	return out
}

func (q *request) comment(id string) reply {
	for _, i := range q.issues {
		for n, c := range i.Comments {
			if strconv.FormatInt(c.ID, 10) != id || i.Deleted || i.Moved != "" {
				continue
			}
			i.Updated = q.now()
			if q.method == http.MethodDelete {
				i.Comments = slices.Delete(i.Comments, n, n+1)
				return reply{status: http.StatusNoContent}
			}
			c.Body, c.Updated = q.text("body"), i.Updated
			return ok(q.showComment(i, c))
		}
	}
	return refuse(http.StatusNotFound, "Not Found")
}

func (q *request) label(i *Issue, names []string) reply {
	for _, name := range names {
		if slices.ContainsFunc(i.Labels, func(o string) bool { return strings.EqualFold(o, name) }) {
			continue
		}
		i.Updated = q.now()
		name = q.needLabel(name)
		i.Labels = append(i.Labels, name)
		i.Events = append(i.Events, Event{Kind: Labelled, Actor: q.access.Login, Label: name, At: i.Updated, id: q.id()})
	}
	return ok(q.showLabels(i.Labels))
}

func (q *request) unlabel(i *Issue, name string) reply {
	n := slices.IndexFunc(i.Labels, func(o string) bool { return strings.EqualFold(o, name) })
	if n < 0 {
		return refuse(http.StatusNotFound, "Label does not exist")
	}
	i.Updated = q.now()
	i.Events = append(i.Events, Event{Kind: Unlabelled, Actor: q.access.Login, Label: i.Labels[n], At: i.Updated, id: q.id()})
	i.Labels = slices.Delete(i.Labels, n, n+1)
	return ok(q.showLabels(i.Labels))
}

func (q *request) assign(i *Issue) reply {
	for _, a := range q.list("assignees") {
		if u := q.users[strings.ToLower(a)]; u != nil && !slices.Contains(i.Assignees, u.Login) {
			i.Assignees = append(i.Assignees, u.Login)
			i.Updated = q.now()
		}
	}
	return reply{status: http.StatusCreated, body: q.issueObject(i)}
}

func (s *Server) showEvent(e Event) map[string]any {
	actor := s.embeddedUser(e.Actor)
	if actor == nil {
		actor = s.embeddedUser(ghost)
	}
	out := map[string]any{
		"id": e.id, "node_id": "x", "url": s.URL, "actor": actor, "event": e.Kind, "commit_id": nil, "commit_url": nil,
		"created_at": stamp(e.At), "performed_via_github_app": nil,
	}
	if e.Kind == Renamed {
		out["rename"] = map[string]any{"from": e.From, "to": e.To}
	} else {
		out["label"] = map[string]any{"name": e.Label, "color": "5319e7"}
	}
	return out
}

func (q *request) labelsPath(parts []string) reply {
	if len(parts) == 1 {
		if !slices.ContainsFunc(q.labels, func(l string) bool { return strings.EqualFold(l, parts[0]) }) {
			return refuse(http.StatusNotFound, "Not Found")
		}
		return ok(q.showLabel(parts[0]))
	}
	if q.method == http.MethodGet {
		return page(q, q.labels, q.showLabel)
	}
	name := q.text("name")
	if slices.ContainsFunc(q.labels, func(l string) bool { return strings.EqualFold(l, name) }) {
		return refuse(http.StatusUnprocessableEntity, "Validation Failed: already_exists")
	}
	q.needLabel(name)
	return reply{status: http.StatusCreated, body: q.showLabel(name)}
}
