package githubtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Review is a review of a pull request.
type Review struct {
	ID        int64
	Author    string
	State     string
	Body      string
	SHA       string
	Submitted time.Time
	Remarks   []Remark
}

// NodeID returns the review's GraphQL ID.
func (r *Review) NodeID() string { return fmt.Sprintf("PRR_%d", r.ID) }

// Remark is a review's comment on a line, which starts a thread.
type Remark struct {
	Author, Path, Body string
	Line               int
	Resolved           bool

	ID      int64
	At      time.Time
	Replies []Remark
}

// NodeID returns the comment's GraphQL ID.
func (m Remark) NodeID() string { return fmt.Sprintf("PRRC_%d", m.ID) }

func (m Remark) thread() string { return fmt.Sprintf("PRRT_%d", m.ID) }

// remarks returns all comments on lines, oldest first.
func (p *Pull) remarks() (all []Remark) {
	for _, r := range p.Reviews {
		for _, m := range r.Remarks {
			all = append(append(all, m), m.Replies...)
		}
	}
	slices.SortStableFunc(all, func(a, b Remark) int { return a.At.Compare(b.At) })
	return all
}

// AddReview adds a review of the commit r.SHA, by default the head.
func (s *Server) AddReview(number int, r Review) *Review {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.issues[number-1]
	r.ID, r.Submitted, r.Remarks = s.id(), s.now(), slices.Clone(r.Remarks)
	r.SHA = cmp.Or(r.SHA, i.Pull.SHA)
	for n := range r.Remarks {
		r.Remarks[n].ID, r.Remarks[n].At = s.id(), r.Submitted
	}
	i.Pull.Reviews, i.Updated = append(i.Pull.Reviews, &r), r.Submitted
	return &r
}

// ReplyTo adds a comment to the thread of a remark, and returns the comment's GraphQL ID.
func (s *Server) ReplyTo(number int, remark int64, author, body string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(s.issues[number-1], remark)
	return s.replyTo(s.issues[number-1], m, author, body).NodeID()
}

func (s *Server) find(i *Issue, remark int64) *Remark {
	for _, r := range i.Pull.Reviews {
		for n := range r.Remarks {
			if r.Remarks[n].ID == remark {
				return &r.Remarks[n]
			}
		}
	}
	return nil
}

func (s *Server) replyTo(i *Issue, m *Remark, author, body string) Remark {
	one := Remark{Author: author, Body: body, Path: m.Path, Line: m.Line, ID: s.id(), At: s.now()}
	m.Replies, i.Updated = append(m.Replies, one), one.At
	return one
}

// Replies returns the texts in the thread of a remark after the first, oldest first.
func (s *Server) Replies(number int, remark int64) (texts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.find(s.issues[number-1], remark).Replies {
		texts = append(texts, m.Body)
	}
	return texts
}

// Reactions returns the reactions to a comment or review with a GraphQL ID, each as "CONTENT by login".
func (s *Server) Reactions(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.reactions[id])
}

// React adds a reaction.
func (s *Server) React(id, login, content string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.react(id, login, content)
}

func (s *Server) react(id, login, content string) {
	if one := content + " by " + login; !slices.Contains(s.reactions[id], one) {
		s.reactions[id] = append(s.reactions[id], one)
	}
}

func (s *Server) showReview(r *Review) map[string]any {
	out := s.desc.object("pull-request-review-items")
	out["id"], out["node_id"], out["user"], out["body"], out["state"] = r.ID, r.NodeID(), s.embeddedUser(r.Author), r.Body, r.State
	out["commit_id"], out["submitted_at"] = r.SHA, stamp(r.Submitted)
	return out
}

func (s *Server) showRemark(m Remark) map[string]any {
	out := s.desc.object("pull-request-review-comment-items")
	out["id"], out["node_id"], out["user"] = m.ID, m.NodeID(), s.embeddedUser(m.Author)
	out["path"], out["line"], out["original_line"], out["body"] = m.Path, m.Line, m.Line, m.Body
	out["created_at"], out["updated_at"] = stamp(m.At), stamp(m.At)
	return out
}

// hasNode reports whether a comment or review has the GraphQL ID.
func (s *Server) hasNode(id string) bool {
	for _, i := range s.issues {
		if slices.ContainsFunc(i.Comments, func(c *Comment) bool { return c.NodeID() == id }) {
			return true
		}
		if i.Pull == nil {
			continue
		}
		if slices.ContainsFunc(i.Pull.Reviews, func(r *Review) bool { return r.NodeID() == id }) ||
			slices.ContainsFunc(i.Pull.remarks(), func(m Remark) bool { return m.NodeID() == id }) {
			return true
		}
	}
	return false
}

func noNode(id string) reply {
	return graphError("NOT_FOUND", "Could not resolve to a node with the global id of '"+id+"'")
}

func data(v map[string]any) reply {
	return ok(map[string]any{"data": v})
}

// graphReactions returns the reaction groups from the viewer's side. Like GitHub it includes empty groups.
func (s *Server) graphReactions(a *Access, ids []any) reply {
	nodes, missing := []any{}, []any{}
	for _, v := range ids {
		id := v.(string)
		if !s.hasNode(id) {
			nodes, missing = append(nodes, nil), append(missing, map[string]any{
				"type":    "NOT_FOUND",
				"message": "Could not resolve to a node with the global id of '" + id + "'",
			})
			continue
		}
		groups := []any{}
		for _, c := range []string{"THUMBS_UP", "THUMBS_DOWN", "LAUGH", "HOORAY", "CONFUSED", "HEART", "ROCKET", "EYES"} {
			groups = append(groups, map[string]any{"content": c, "viewerHasReacted": slices.Contains(s.reactions[id], c+" by "+a.Login)})
		}
		kind, _, _ := strings.Cut(id, "_")
		name := map[string]string{"IC": "IssueComment", "PRR": "PullRequestReview", "PRRC": "PullRequestReviewComment"}[kind]
		nodes = append(nodes, map[string]any{"__typename": name, "reactionGroups": groups})
	}
	out := map[string]any{"data": map[string]any{"nodes": nodes}}
	if len(missing) > 0 {
		out["errors"] = missing
	}
	return ok(out)
}

func (s *Server) graphAddReaction(a *Access, id, content string) reply {
	if !s.hasNode(id) {
		return noNode(id)
	}
	s.react(id, a.Login, content)
	return data(map[string]any{"addReaction": map[string]any{"reaction": map[string]any{"content": content}}})
}

func (s *Server) graphThreads(number, last int, before string) reply {
	if number < 1 || number > len(s.issues) || s.issues[number-1].Pull == nil {
		return graphError("NOT_FOUND", fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", number))
	}
	threads := []any{}
	for _, r := range s.issues[number-1].Pull.Reviews {
		for _, m := range r.Remarks {
			comments := []any{}
			for _, c := range append([]Remark{m}, m.Replies...) {
				comments = append(comments, map[string]any{"body": c.Body, "createdAt": stamp(c.At), "author": s.actor(c.Author)})
			}
			threads = append(threads, map[string]any{
				"id":         m.thread(),
				"isResolved": m.Resolved,
				"path":       m.Path,
				"line":       m.Line,
				"comments":   map[string]any{"nodes": comments[max(0, len(comments)-last):]},
			})
		}
	}
	if before != "" {
		end, err := strconv.Atoi(before)
		if err != nil || end > len(threads) {
			return graphError("INVALID_CURSOR_ARGUMENTS", "`"+before+"` does not appear to be a valid cursor.")
		}
		threads = threads[:end]
	}
	start := max(0, len(threads)-last)
	page := map[string]any{"hasPreviousPage": start > 0, "startCursor": strconv.Itoa(start)}
	pull := map[string]any{"reviewThreads": map[string]any{"pageInfo": page, "nodes": threads[start:]}}
	return data(map[string]any{"repository": map[string]any{"pullRequest": pull}})
}

func (s *Server) graphReply(a *Access, thread, body string) reply {
	if !s.hasPermission(a, "write") {
		return graphError("FORBIDDEN", "Resource not accessible by integration")
	}
	for _, i := range s.issues {
		if i.Pull == nil {
			continue
		}
		for _, r := range i.Pull.Reviews {
			for n := range r.Remarks {
				if m := &r.Remarks[n]; m.thread() == thread {
					made := map[string]any{"comment": map[string]any{"id": s.replyTo(i, m, a.Login, body).NodeID()}}
					return data(map[string]any{"addPullRequestReviewThreadReply": made})
				}
			}
		}
	}
	return noNode(thread)
}

// actor returns an account in GraphQL's form, where names of bots have no ending; nil if it was deleted.
func (s *Server) actor(login string) any {
	u := s.users[strings.ToLower(login)]
	if u == nil {
		return nil
	}
	kind := "User"
	if u.Bot {
		kind = "Bot"
	}
	return map[string]any{"__typename": kind, "login": strings.TrimSuffix(u.Login, "[bot]"), "databaseId": u.ID}
}
