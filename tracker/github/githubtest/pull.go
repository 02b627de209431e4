package githubtest

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// sha returns the head of a branch; without git it is a hash of the name. The caller must hold mu.
func (s *Server) sha(branch string) string {
	if v := s.refs[branch]; v != "" {
		return v
	}
	if s.git != nil {
		return s.git.Head(branch)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(branch)))[:40]
}

// SetHead moves a branch and the heads of its pull requests.
func (s *Server) SetHead(branch, sha string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refs[branch] = sha
	for _, i := range s.issues {
		if i.Pull != nil && i.Pull.Head == branch && !i.Closed {
			i.Pull.SHA, i.Updated = sha, s.now()
		}
	}
}

// showPull renders a pull request in full, or in the shorter form of lists.
func (s *Server) showPull(i *Issue, full bool) map[string]any {
	out := s.desc.object("pull-request-simple-items")
	if full {
		out = s.desc.object("pull-request")
	}
	delete(out, "active_lock_reason")
	p := i.Pull
	out["number"], out["id"], out["title"], out["body"] = i.Number, i.ID, i.Title, i.Body
	out["node_id"] = fmt.Sprintf("PR_%d", i.Number)
	out["html_url"] = fmt.Sprintf("%s/%s/pull/%d", s.URL, s.name, i.Number)
	out["user"], out["assignee"], out["assignees"] = s.embeddedUser(i.Author), nil, s.accounts(i.Assignees)
	out["state"], out["closed_at"], out["merged_at"], out["milestone"] = "open", nil, nil, nil
	if i.Closed {
		out["state"], out["closed_at"] = "closed", stamp(i.Updated)
	}
	if p.Merged {
		out["merged_at"] = stamp(i.Updated)
	}
	out["labels"], out["draft"] = s.showLabels(i.Labels), p.Draft
	teams := []any{}
	for _, slug := range p.Teams {
		team := s.desc.object("pull-request")["requested_teams"].([]any)[0].(map[string]any)
		team["slug"], team["name"], team["parent"] = slug, slug, nil
		team["type"], team["organization_id"] = "organization", 1 //nolint:misspell // GitHub's
		teams = append(teams, team)
	}
	out["requested_reviewers"], out["requested_teams"] = s.accounts(p.Reviewers), teams
	out["created_at"], out["updated_at"] = stamp(i.Created), stamp(i.Updated)
	home := s.name
	if p.Fork {
		home = i.Author + "/" + Repo
	}
	s.fillBranch(out["head"], p.Head, p.SHA, home)
	s.fillBranch(out["base"], p.Base, s.sha(p.Base), s.name)
	if full {
		out["mergeable"], out["mergeable_state"], out["merged"], out["merged_by"] = p.Mergeable, "clean", p.Merged, nil
		if p.Mergeable == nil {
			out["mergeable"], out["mergeable_state"] = nil, "unknown"
		}
		if p.Dirty {
			out["mergeable_state"] = "dirty"
		}
	}
	return out
}

// fillBranch fills in the head or the base.
func (s *Server) fillBranch(v any, ref, sha, fullName string) {
	b := v.(map[string]any)
	b["ref"], b["sha"], b["label"] = ref, sha, strings.Split(fullName, "/")[0]+":"+ref
	b["repo"].(map[string]any)["full_name"] = fullName
}

func (q *request) pullsPath(parts []string) reply {
	if len(parts) == 0 {
		if q.method == http.MethodPost {
			return q.openPull()
		}
		return page(q, q.pulls(), func(i *Issue) map[string]any { return q.showPull(i, false) })
	}
	n, _ := strconv.Atoi(parts[0])
	if n < 1 || n > len(q.issues) || q.issues[n-1].Pull == nil {
		return refuse(http.StatusNotFound, "Not Found")
	}
	i := q.issues[n-1]
	if len(parts) == 1 {
		if q.method == http.MethodPatch {
			return q.edit(i)
		}
		return ok(q.showPull(i, true))
	}
	if parts[1] == "requested_reviewers" {
		return q.requestReview(i)
	}
	if parts[1] == "reviews" {
		return page(q, i.Pull.Reviews, func(r *Review) map[string]any { return q.showReview(r) })
	}
	all := i.Pull.remarks()
	if q.query.Get("direction") == "desc" {
		slices.Reverse(all)
	}
	return page(q, all, q.showRemark)
}

func (q *request) pulls() (out []*Issue) {
	owner, head, named := strings.Cut(q.query.Get("head"), ":")
	state := q.query.Get("state")
	for _, i := range q.issues {
		if i.Pull == nil || (state != "all" && i.Closed != (state == "closed")) {
			continue
		}
		from := Owner
		if i.Pull.Fork {
			from = i.Author
		}
		if !named || (i.Pull.Head == head && strings.EqualFold(from, owner)) {
			out = append(out, i)
		}
	}
	return out
}

// openPull opens a pull request. There is at most one open request per head and base.
func (q *request) openPull() reply {
	head, base := strings.TrimPrefix(q.text("head"), Owner+":"), q.text("base")
	if strings.TrimSpace(q.text("title")) == "" {
		return blankTitle()
	}
	if q.git != nil && q.git.Head(head) == "" {
		return invalid("head", "invalid", "")
	}
	if q.git != nil && q.git.Head(base) == "" {
		return invalid("base", "invalid", "")
	}
	for _, i := range q.issues {
		if i.Pull != nil && !i.Closed && i.Pull.Head == head && i.Pull.Base == base && !i.Pull.Fork {
			return invalid("", "custom", "A pull request already exists for "+Owner+":"+head+".")
		}
	}
	draft, _ := q.body["draft"].(bool)
	if draft && q.repo.private {
		return invalid("draft", "custom", "Draft pull requests are not supported in this repository.")
	}
	i := q.addIssue(Issue{Title: q.text("title"), Body: q.text("body"), Author: q.access.Login,
		Pull: &Pull{Head: head, Base: base, Draft: draft, SHA: q.sha(head)}})
	return reply{status: http.StatusCreated, body: q.showPull(i, true)}
}

func invalid(field, code, message string) reply {
	a := refuse(http.StatusUnprocessableEntity, "Validation Failed")
	e := map[string]any{"resource": "PullRequest", "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	a.body.(map[string]any)["errors"] = []any{e}
	return a
}

// blankTitle is GitHub's error for an issue or pull request without a title.
func blankTitle() reply { return invalid("title", "custom", "title can't be blank") }

func (q *request) edit(i *Issue) reply {
	if v, ok := q.body["title"].(string); ok && strings.TrimSpace(v) == "" {
		return blankTitle()
	}
	i.Updated = q.now()
	for key, to := range map[string]*string{"title": &i.Title, "body": &i.Body, "base": &i.Pull.Base} {
		if v, ok := q.body[key].(string); ok {
			*to = v
		}
	}
	return ok(q.showPull(i, true))
}

func (q *request) requestReview(i *Issue) reply {
	for _, login := range q.list("reviewers") {
		u := q.users[strings.ToLower(login)]
		if u == nil || u.Permission == "none" || strings.EqualFold(login, i.Author) {
			return refuse(http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators.")
		}
		if !slices.Contains(i.Pull.Reviewers, u.Login) {
			i.Pull.Reviewers = append(i.Pull.Reviewers, u.Login)
			i.Updated = q.now()
		}
	}
	for _, team := range q.list("team_reviewers") {
		if !slices.Contains(i.Pull.Teams, team) {
			i.Pull.Teams = append(i.Pull.Teams, team)
			i.Updated = q.now()
		}
	}
	return reply{status: http.StatusCreated, body: q.showPull(i, false)}
}
