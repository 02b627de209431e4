package github_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

// people creates the accounts that a test names.
type people struct {
	s     *githubtest.Server
	known sync.Map
}

func (p *people) ensureUser(name string) string {
	if _, known := p.known.LoadOrStore(name, true); !known {
		p.s.AddUser(githubtest.User{Login: name, Permission: "none"})
	}
	return name
}

func (p *people) addPerson(a trackertest.Person) {
	p.known.Store(a.Name, true)
	may := map[bool]string{true: "write", false: "read"}[a.Writes]
	p.s.AddUser(githubtest.User{Login: a.Name, ID: a.ID, Bot: a.Bot, Permission: may})
}

// site implements people's actions on a fake GitHub.
func site(s *githubtest.Server) *trackertest.Site {
	p := &people{s: s}
	for _, name := range []string{"ada", "mallory", githubtest.Bot} {
		p.known.Store(name, true)
	}
	event := func(by, kind, label string) func(*githubtest.Issue, time.Time) {
		by = p.ensureUser(by)
		return func(i *githubtest.Issue, now time.Time) {
			i.Events = append(i.Events, githubtest.Event{Kind: kind, Actor: by, Label: label, From: "a", To: "b", At: now})
		}
	}
	site := &trackertest.Site{
		Server: s.Server, Ralph: githubtest.Bot, Token: githubtest.Token,
		Open: func(t *testing.T, edits ...func(*forge.Config)) trackertest.Forge {
			c := configOf(s)
			for _, edit := range edits {
				edit(&c)
			}
			return open(t, c)
		},
		Admit:      p.addPerson,
		HidePeople: func() { s.SetPermission(githubtest.Bot, "read") },
		Issue: func(seed trackertest.Seed) int {
			i := githubtest.Issue{Title: seed.Title, Body: seed.Body, Author: seed.Author, Labels: seed.Labels, Closed: seed.Closed,
				Created: seed.Created, Assignees: seed.Assignees, Milestone: seed.Milestone}
			for _, n := range seed.BlockedBy {
				i.BlockedBy = append(i.BlockedBy, n+1)
			}
			return s.AddIssue(i)
		},
		Label: func(by string, issue int, label string, on bool) {
			s.Clock().Advance(time.Minute)
			kind := githubtest.Labelled
			if !on {
				kind = githubtest.Unlabelled
			}
			s.Do(issue, event(by, kind, label))
			s.Do(issue, func(i *githubtest.Issue, _ time.Time) {
				i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, label) })
				if on {
					i.Labels = append(i.Labels, label)
				}
			})
		},
		Edit: func(by string, issue int, title, body string) {
			if title != "" {
				s.Do(issue, event(by, githubtest.Renamed, ""))
			}
			by = p.ensureUser(by)
			s.Do(issue, func(i *githubtest.Issue, now time.Time) {
				if body != "" {
					i.Edits = append(i.Edits, githubtest.Edit{By: by, At: now})
				}
				i.Title, i.Body = cmp.Or(title, i.Title), cmp.Or(body, i.Body)
			})
		},
		Say: func(by string, number int, _ bool, body string) string {
			return fmt.Sprintf("IC_%d", s.AddComment(number, p.ensureUser(by), body))
		},
		Texts: func(number int, _ bool) (texts []string) {
			for _, c := range s.Issue(number).Comments {
				if c.Author == githubtest.Bot {
					texts = append(texts, c.Body)
				}
			}
			return texts
		},
		React: func(id, emoji string) { s.React(id, "ada", strings.ToUpper(emoji)) },
		Signs: func(id string) (signs []string) {
			for _, r := range s.Reactions(id) {
				if emoji, ours := strings.CutSuffix(r, " by "+githubtest.Bot); ours {
					signs = append(signs, strings.ToLower(emoji))
				}
			}
			return signs
		},
	}
	p.requests(site)
	return site
}

// requests adds people's actions on requests.
func (p *people) requests(site *trackertest.Site) {
	s := p.s
	remark := func(thread string) int64 {
		n, _ := strconv.ParseInt(strings.TrimPrefix(thread, "PRRT_"), 10, 64) // this test's own ID
		return n
	}
	site.Request = func(r trackertest.Request) int {
		i := githubtest.Issue{Title: r.Title, Body: r.Body, Author: p.ensureUser(r.By), Closed: r.State == "closed" || r.State == "merged"}
		return s.AddPull(i, githubtest.Pull{Head: r.Head, Base: r.Base, SHA: r.Commit, Draft: r.Draft, Merged: r.State == "merged"})
	}
	site.Requests = func() (all []trackertest.Request) {
		for _, n := range s.Pulls() {
			all = append(all, requestOf(s.Issue(n)))
		}
		return all
	}
	site.Amend = func(request int, change func(*trackertest.Request)) {
		was := requestOf(s.Issue(request))
		r := was
		change(&r)
		if r.Commit != was.Commit {
			s.SetHead(r.Head, r.Commit)
		}
		if r.Failed != "" {
			s.SetCheck(r.Commit, githubtest.Check{Name: r.Failed, Status: "completed", Conclusion: "failure", Actions: true}, r.Failed)
		}
		s.Do(request, func(i *githubtest.Issue, _ time.Time) {
			mergeable := !r.Conflicts
			i.Closed, i.Pull.Mergeable, i.Pull.Dirty = r.State == "closed", &mergeable, r.Conflicts
		})
	}
	site.Review = func(by string, request int, body string) {
		s.AddReview(request, githubtest.Review{Author: p.ensureUser(by), State: "CHANGES_REQUESTED", Body: body})
	}
	site.Remark = func(by string, request int, body string) string {
		remark := githubtest.Remark{Author: p.ensureUser(by), Path: "a.go", Line: 3, Body: body}
		r := s.AddReview(request, githubtest.Review{Author: by, State: "COMMENTED", Remarks: []githubtest.Remark{remark}})
		return fmt.Sprintf("PRRT_%d", r.Remarks[0].ID)
	}
	site.Reply = func(by string, request int, thread, body string) string {
		return s.ReplyTo(request, remark(thread), p.ensureUser(by), body)
	}
	site.Thread = func(request int, thread string) []string { return s.Replies(request, remark(thread)) }
}

func requestOf(i githubtest.Issue) trackertest.Request {
	state := map[bool]string{true: "closed", false: "open"}[i.Closed]
	if i.Pull.Merged {
		state = "merged"
	}
	return trackertest.Request{
		Number: i.Number, By: i.Author, Head: i.Pull.Head, Base: i.Pull.Base, Title: i.Title, Body: i.Body, Commit: i.Pull.SHA, State: state,
		Draft: i.Pull.Draft, Conflicts: i.Pull.Dirty, Labels: i.Labels, Reviewers: i.Pull.Reviewers, Assignees: i.Assignees,
	}
}
