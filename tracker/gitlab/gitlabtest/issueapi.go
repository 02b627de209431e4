package gitlabtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (i *Issue) state() string {
	if i.Closed {
		return "closed"
	}
	return "opened"
}

func (s *Server) issueObject(p *Project, i *Issue) object {
	movedTo := any(nil)
	if i.MovedTo != 0 {
		movedTo = i.MovedTo
	}
	o := object{
		"id": i.id, "iid": i.iid, "project_id": p.id, "title": i.Title, "description": i.Description, "state": i.state(),
		"created_at": stamp(i.Created), "updated_at": stamp(i.updated), "closed_at": nil, "labels": slices.Clone(i.Labels),
		"milestone": nil, "assignees": s.accounts(i.Assignees), "author": s.embeddedUser(i.author), "user_notes_count": i.noteCount(),
		"merge_requests_count": len(p.closingMerges(i)), "upvotes": 0, "downvotes": 0, "due_date": nil, "confidential": i.Confidential,
		"discussion_locked": i.Locked, "issue_type": cmp.Or(i.Type, "issue"),
		"web_url":               fmt.Sprintf("%s/%s/-/issues/%d", s.URL, p.path, i.iid),
		"blocking_issues_count": i.blocking(), "weight": nil, "moved_to_id": movedTo, "subscribed": false,
		"references": object{
			"short":    fmt.Sprintf("#%d", i.iid),
			"relative": fmt.Sprintf("#%d", i.iid),
			"full":     fmt.Sprintf("%s#%d", p.path, i.iid),
		},
	}
	if i.Labels == nil {
		o["labels"] = []string{}
	}
	if i.Description == "" {
		o["description"] = nil
	}
	if i.Milestone != "" {
		o["milestone"] = object{"id": 1, "title": i.Milestone, "state": "active"}
	}
	return o
}

func (i *Issue) noteCount() (n int) {
	for _, x := range i.notes {
		if !x.system {
			n++
		}
	}
	return n
}

// blocking counts the open issues that this one blocks.
func (i *Issue) blocking() (n int) {
	for _, l := range i.links {
		if l.kind == "blocks" && !l.issue.Closed && !i.Closed {
			n++
		}
	}
	return n
}

func (s *Server) listIssues(c *call, p *Project) answer {
	if p.NoIssues {
		return forbidden()
	}
	var found []*Issue
	for _, i := range p.issues {
		state := c.query.Get("state")
		if !i.Deleted && (state == "" || state == "all" || state == i.state()) && matchesIID(c.query["iids[]"], i.iid) && i.hasLabels(c.query.Get("labels")) {
			found = append(found, i)
		}
	}
	position := func(i *Issue) string { return fmt.Sprintf("%s %012d", stamp(i.Created), i.id) }
	slices.SortFunc(found, func(a, b *Issue) int {
		if c.query.Get("sort") == "asc" {
			return strings.Compare(position(a), position(b))
		}
		return strings.Compare(position(b), position(a))
	})
	show := func(i *Issue) object { return s.issueObject(p, i) }
	if c.query.Get("pagination") == "keyset" && !s.noKeyset && c.query.Get("sort") == "asc" {
		return keyset(c, found, position, show)
	}
	return paged(c, found, show)
}

// hasLabels reports whether the issue has all labels of a comma-separated list. GitLab's labels are case-sensitive.
func (i *Issue) hasLabels(list string) bool {
	return list == "" || !slices.ContainsFunc(strings.Split(list, ","), func(l string) bool { return !slices.Contains(i.Labels, l) })
}

func matchesIID(iids []string, iid int) bool {
	return len(iids) == 0 || slices.Contains(iids, strconv.Itoa(iid))
}

func (s *Server) updateIssue(c *call, p *Project, i *Issue) answer {
	level := p.level(c.user.ID)
	if level < Reporter && c.user.ID != i.author {
		return forbidden()
	}
	i.writes++
	if level >= Reporter { // GitLab silently ignores label changes by lower roles
		for _, name := range names(c.body["add_labels"]) {
			p.setLabel(i, c.user.ID, name, true)
		}
		for _, name := range names(c.body["remove_labels"]) {
			p.setLabel(i, c.user.ID, name, false)
		}
	}
	if event := c.body["state_event"]; event == "close" && !i.Closed || event == "reopen" && i.Closed {
		i.Closed, i.updated = !i.Closed, s.now()
	}
	return ok(s.issueObject(p, i))
}

// names parses a comma-separated list of label names.
func names(v any) []string {
	text, _ := v.(string)
	var out []string
	for n := range strings.SplitSeq(text, ",") {
		if n = strings.TrimSpace(n); n != "" {
			out = append(out, n)
		}
	}
	return out
}

func (s *Server) labelEvents(c *call, i *Issue) answer {
	return paged(c, i.events, func(e *labelEvent) object {
		o := object{
			"id": e.id, "user": s.embeddedUser(e.user), "created_at": stamp(e.at), "resource_type": "Issue", "resource_id": i.id,
			"label": nil, "action": e.action,
		}
		if e.label != nil {
			o["label"] = object{"id": e.label.id, "name": e.label.name, "color": e.label.color, "description": e.label.description}
		}
		return o
	})
}

func (s *Server) links(i *Issue) answer {
	out := []object{}
	for n, l := range i.links {
		o := s.issueObject(l.project, l.issue)
		o["issue_link_id"], o["link_type"] = n+1, l.kind
		o["link_created_at"], o["link_updated_at"] = stamp(i.Created), stamp(i.Created)
		out = append(out, o)
	}
	return ok(out)
}
