package gitlab

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

// ensureUser returns the account with this name, which it creates on first use.
func (r *rig) ensureUser(name string) *gitlabtest.User {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.people[name] == nil {
		r.people[name] = r.server.AddUser(gitlabtest.User{Username: name})
	}
	return r.people[name]
}

func (r *rig) addPerson(p trackertest.Person) {
	r.mu.Lock()
	if r.people[p.Name] == nil {
		r.people[p.Name] = r.server.AddUser(gitlabtest.User{Username: p.Name, ID: int(p.ID), Bot: p.Bot})
	}
	u := r.people[p.Name]
	r.mu.Unlock()
	role := gitlabtest.Reporter
	if p.Writes {
		role = gitlabtest.Developer
	}
	r.project.SetMember(u, role)
}

func (r *rig) ensureUsers(names []string) (all []*gitlabtest.User) {
	for _, name := range names {
		all = append(all, r.ensureUser(name))
	}
	return all
}

// site implements people's actions on a fake GitLab.
func (r *rig) site() *trackertest.Site {
	p := r.project
	note := func(id string) int { return number(id[strings.LastIndexByte(id, '/')+1:]) }
	return &trackertest.Site{
		Server: r.server.Server, Ralph: "ralph", Token: secret,
		Open:       func(t *testing.T, edits ...func(*forge.Config)) trackertest.Forge { return r.tracker(t, edits...) },
		Admit:      r.addPerson,
		HidePeople: func() { p.SetProject(func(p *gitlabtest.Project) { p.HideMembers = true }) },
		Issue: func(s trackertest.Seed) int {
			return p.AddIssue(gitlabtest.Issue{Title: s.Title, Description: s.Body, Labels: s.Labels, Closed: s.Closed, Created: s.Created,
				Author: r.ensureUser(cmp.Or(s.Author, "ada")), Assignees: r.ensureUsers(s.Assignees), Milestone: s.Milestone})
		},
		Label: func(by string, issue int, label string, on bool) {
			if on {
				p.Label(r.ensureUser(by), issue, label)
			} else {
				p.Unlabel(r.ensureUser(by), issue, label)
			}
		},
		Edit: func(by string, issue int, title, body string) {
			if title != "" {
				p.Rename(r.ensureUser(by), issue, title)
			}
			if body != "" {
				p.Describe(r.ensureUser(by), issue, body, false)
			}
		},
		Request: func(q trackertest.Request) int {
			state := strings.Replace(q.State, "open", "opened", 1)
			return p.AddMerge(gitlabtest.Merge{Title: q.Title, Description: q.Body, Source: q.Head, Target: cmp.Or(q.Base, "main"), Author: r.ensureUser(q.By),
				SHA: q.Commit, State: state})
		},
		Requests: func() (all []trackertest.Request) {
			for _, m := range p.Merges() {
				all = append(all, requestShown(m))
			}
			return all
		},
		Amend: func(request int, change func(*trackertest.Request)) {
			was := requestShown(p.Merges()[request-1])
			q := was
			change(&q)
			if q.Commit != was.Commit {
				p.Push(request, q.Commit)
			}
			if q.Failed != "" {
				p.Run(request, "failed", gitlabtest.Job{Name: q.Failed, Stage: "test", Status: "failed", Trace: q.Failed})
			}
			p.SetMerge(request, func(m *gitlabtest.Merge) {
				m.Conflicts, m.State = q.Conflicts, strings.Replace(q.State, "open", "opened", 1)
			})
		},
		Review: func(by string, request int, body string) {
			p.Discuss(request, gitlabtest.Thread{By: r.ensureUser(by), Body: body, Resolvable: true})
		},
		Remark: func(by string, request int, body string) string {
			return p.Discuss(request, gitlabtest.Thread{By: r.ensureUser(by), Body: body, Resolvable: true, Path: "a.go", Line: 3})
		},
		Reply: func(by string, request int, thread, body string) string {
			return fmt.Sprintf("merge_requests/%d/notes/%d", request, p.Answer(request, thread, r.ensureUser(by), body))
		},
		Thread: func(request int, thread string) []string { return p.Said(request, thread) },
		Say: func(by string, number int, request bool, body string) string {
			if request {
				return fmt.Sprintf("merge_requests/%d/notes/%d", number, p.NoteOn(number, r.ensureUser(by), body))
			}
			return fmt.Sprintf("issues/%d/notes/%d", number, p.Comment(r.ensureUser(by), number, body, false))
		},
		Texts: func(number int, request bool) []string {
			if request {
				return p.MergeNotes(r.ralph, number)
			}
			return p.Notes(r.ralph, number)
		},
		React: func(id, emoji string) { p.Award(r.ada, note(id), emoji) },
		Signs: func(id string) (signs []string) {
			for _, a := range p.Awards(note(id)) {
				if emoji, ours := strings.CutSuffix(a, " by ralph"); ours {
					signs = append(signs, emoji)
				}
			}
			return signs
		},
	}
}

// requestShown converts a request. GitLab stores the draft state in the title.
func requestShown(m gitlabtest.Merge) trackertest.Request {
	title, draft := strings.CutPrefix(m.Title, "Draft: ")
	q := trackertest.Request{
		Number: m.IID, By: m.Author.Username, Head: m.Source, Base: m.Target, Title: title, Body: m.Description, Commit: m.SHA,
		State: strings.Replace(m.State, "opened", "open", 1), Draft: draft, Conflicts: m.Conflicts, Labels: m.Labels,
	}
	for _, u := range m.Reviewers {
		q.Reviewers = append(q.Reviewers, u.Username)
	}
	for _, u := range m.Assignees {
		q.Assignees = append(q.Assignees, u.Username)
	}
	return q
}
