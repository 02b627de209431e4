package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// forge is a project on a fake forge, with a clone.
type forge struct {
	server *forgetest.Server  // that of hub or lab
	hub    *githubtest.Server // either hub or lab is set
	lab    *gitlabtest.Server
	remote string
	bare   repository // the remote repository on disk
	// project is the project on GitLab.
	project *gitlabtest.Project
	// rename changes the title of an issue.
	rename func(key, title string)
	flags  []string
	env    []string
	// issue opens an issue labelled by a trusted person and returns its key.
	issue func(title, body string) string
	// labels and report return what people see on the issue.
	labels func(key string) []string
	report func(key string) string
	// requests returns the head branches of the open requests, each with its title and draft state.
	requests func() []string
	// fail makes the required check of a branch fail.
	fail func(branch string)
	// say comments on an issue or on the request of its branch, as a person who may direct ralph or as a stranger. signs
	// returns ralph's reactions to the comment.
	say func(key string, request, trusted bool, text string) (signs func() []string)
	// remark starts a review thread on the request of an issue. since returns the replies to it.
	remark func(key, text string) (since func() []string)
	// replies returns ralph's texts on the request of an issue.
	replies func(key string) []string
}

func onGitHub(t *testing.T, origin repository) forge {
	t.Helper()
	s := githubtest.New(t)
	bare := s.UseGit()
	origin.git(t, "push", "--quiet", bare, "main")
	number := func(key string) int {
		n, err := strconv.Atoi(key)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, l := range []string{"no-human", "in-review", "needs-human", "needs-info"} {
		s.AddLabel(l)
	}
	request := func(key string) int {
		for _, n := range s.Pulls() {
			if i := s.Issue(n); i.Pull.Head == "ralph/"+key && !i.Closed {
				return n
			}
		}
		t.Fatalf("%s has no request", key)
		return 0
	}
	return forge{
		server: s.Server, hub: s,
		say: func(key string, onRequest, trusted bool, text string) func() []string {
			n, who := number(key), "mallory"
			if onRequest {
				n = request(key)
			}
			if trusted {
				who = "ada"
			}
			id := fmt.Sprintf("IC_%d", s.AddComment(n, who, text))
			return func() (signs []string) {
				for _, r := range s.Reactions(id) {
					sign, _, _ := strings.Cut(r, " ")
					signs = append(signs, strings.ToLower(sign))
				}
				return signs
			}
		},
		remark: func(key, text string) func() []string {
			n, remark := request(key), githubtest.Remark{Author: "ada", Path: "a.txt", Line: 1, Body: text}
			r := s.AddReview(n, githubtest.Review{Author: "ada", State: "COMMENTED", Remarks: []githubtest.Remark{remark}})
			return func() []string { return s.Replies(n, r.Remarks[0].ID) }
		},
		replies: func(key string) (out []string) {
			for _, c := range s.Issue(request(key)).Comments {
				if c.Author == githubtest.Bot {
					out = append(out, c.Body)
				}
			}
			return out
		},
		remote: s.GitURL(),
		bare:   repository(bare),
		rename: func(key, title string) {
			s.Do(number(key), func(i *githubtest.Issue, now time.Time) { i.Title, i.Updated = title, now })
		},
		flags: []string{"--tracker", "github", "--forge-url", s.BaseURL()},
		env:   []string{"GITHUB_TOKEN=" + githubtest.Token},
		issue: func(title, body string) string {
			return strconv.Itoa(s.AddIssue(githubtest.Issue{Title: title, Body: body, Labels: []string{"no-human"}}))
		},
		labels: func(key string) []string { return s.Issue(number(key)).Labels },
		report: func(key string) string {
			var out []string
			for _, c := range s.Issue(number(key)).Comments {
				if c.Author == githubtest.Bot {
					out = append(out, c.Body)
				}
			}
			return strings.Join(out, "\n=====\n")
		},
		requests: func() []string {
			var out []string
			for _, n := range s.Pulls() {
				i := s.Issue(n)
				if !i.Closed {
					out = append(out, fmt.Sprintf("%s: %s (draft %v)", i.Pull.Head, i.Title, i.Pull.Draft))
				}
			}
			return out
		},
		fail: func(branch string) {
			s.Require("tests")
			sha := repository(bare).git(t, "rev-parse", "refs/heads/"+branch)
			s.SetCheck(sha, githubtest.Check{Name: "tests", Status: "completed", Conclusion: "failure"}, "boom: the tests fail\n")
		},
	}
}

func onGitLab(t *testing.T, origin repository) forge {
	t.Helper()
	s := gitlabtest.New(t)
	p := s.AddProject("group/sub/project")
	bare := p.AddRepository(t, string(origin))
	ada, bot := s.AddUser(gitlabtest.User{Username: "ada"}), s.AddUser(gitlabtest.User{Username: "ralph", Bot: true})
	mallory := s.AddUser(gitlabtest.User{Username: "mallory"})
	p.SetMember(ada, gitlabtest.Maintainer)
	p.SetMember(bot, gitlabtest.Developer)
	s.AddToken(bot, "glpat-testtoken0123456789", time.Time{}, "api", "write_repository")
	number := func(key string) int {
		n, err := strconv.Atoi(key)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	request := func(key string) int {
		for n, m := range p.Merges() {
			if m.Source == "ralph/"+key && m.State == "opened" {
				return n + 1
			}
		}
		t.Fatalf("%s has no request", key)
		return 0
	}
	return forge{
		server: s.Server, lab: s,
		say: func(key string, onRequest, trusted bool, text string) func() []string {
			who := mallory
			if trusted {
				who = ada
			}
			id := 0
			if onRequest {
				id = p.NoteOn(request(key), who, text)
			} else {
				id = p.Comment(who, number(key), text, false)
			}
			return func() (signs []string) {
				for _, a := range p.Awards(id) {
					sign, _, _ := strings.Cut(a, " ")
					signs = append(signs, sign)
				}
				return signs
			}
		},
		remark: func(key, text string) func() []string {
			n := request(key)
			thread := p.Discuss(n, gitlabtest.Thread{By: ada, Body: text, Resolvable: true, Path: "a.txt", Line: 1})
			return func() []string { return p.Said(n, thread) }
		},
		replies: func(key string) []string { return p.MergeNotes(bot, request(key)) },
		project: p,
		remote:  p.Remote(),
		bare:    repository(bare),
		rename:  func(key, title string) { p.Rename(ada, number(key), title) },
		flags:   []string{"--tracker", "gitlab", "--forge-url", s.URL},
		env:     []string{"GITLAB_TOKEN=glpat-testtoken0123456789"},
		issue: func(title, body string) string {
			return strconv.Itoa(p.AddIssue(gitlabtest.Issue{Title: title, Description: body, Author: ada, Labels: []string{"no-human"}}))
		},
		labels: func(key string) []string { return p.IssueLabels(number(key)) },
		report: func(key string) string { return strings.Join(p.Notes(bot, number(key)), "\n=====\n") },
		requests: func() []string {
			var out []string
			for _, m := range p.Merges() {
				out = append(out, fmt.Sprintf("%s: %s (draft %v)", m.Source, strings.TrimPrefix(m.Title, "Draft: "), strings.HasPrefix(m.Title, "Draft: ")))
			}
			return out
		},
		fail: func(branch string) {
			for i, m := range p.Merges() {
				if m.Source == branch {
					p.Run(i+1, "failed", gitlabtest.Job{Name: "tests", Status: "failed", Trace: "boom: the tests fail\n"})
				}
			}
		},
	}
}

// A whole sweep on a forge, as from cron: labelled issues are worked, pushed with the tracker's own credentials, opened for
// review, reported and labelled. A failing check causes a second run on the same request.
func TestForgeSweep(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, repository) forge{"github": onGitHub, "gitlab": onGitLab} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, newRepository(t))
			s := newScene(t, `
issues:
  "*":
    - - append: {path: "work-{{key}}.txt", text: "x\n"}
      - commit: "Do {{key}}"
      - say: "Done, @everyone! Closes #1 <promise>COMPLETE</promise>"
`)
			key := f.issue("Do it, @team", "Please. /close")
			hard := f.issue("Cannot pass", "Never.")
			r := repository(filepath.Join(t.TempDir(), "clone"))
			env := append(f.env, "RALPH_MAX_ITERATIONS=1", "RALPH_MAX_ATTEMPTS=1")
			clone(t, f, r)
			args := append([]string{"work", "--gate", `test "$RALPH_ISSUE_KEY" = ` + key}, f.flags...)
			if got := s.start(t, r, env, args...).end(t); got != 3 {
				t.Fatalf("status %d, want 3: one issue cannot pass its gate", got)
			}
			requests := f.requests()
			slices.Sort(requests)
			want := []string{
				"ralph/" + key + ": Do it, @ team (draft false)", "ralph/" + hard + ": Cannot pass (draft true)",
			}
			if !slices.Equal(requests, want) {
				t.Errorf("requests %q, want %q", requests, want)
			}
			if l := f.labels(key); !slices.Contains(l, "in-review") || slices.Contains(l, "no-human") {
				t.Errorf("labels of %s: %q", key, l)
			}
			if l := f.labels(hard); !slices.Contains(l, "needs-human") {
				t.Errorf("labels of %s: %q", hard, l)
			}
			for _, k := range []string{key, hard} {
				text := f.report(k)
				if strings.Count(text, "**ralph:") != 1 || strings.Contains(text, "@everyone") || strings.Contains(text, "Closes #1") {
					t.Errorf("report of %s:\n%s", k, text)
				}
				if strings.Contains(text, strings.SplitN(f.env[0], "=", 2)[1]) {
					t.Error("the token is in the report")
				}
			}
			noSecrets(t, s, r, strings.SplitN(f.env[0], "=", 2)[1])

			// Nothing is left to do, ...
			if got := s.start(t, r, env, args...).end(t); got != 0 {
				t.Errorf("the second sweep: status %d", got)
			}
			if n := s.starts(t)[key]; n != 1 {
				t.Errorf("%s was worked %d times", key, n)
			}
			// ... until a required check of the request fails.
			f.fail("ralph/" + key)
			// A text that was changed since its approval is not worked ...
			f.rename(key, "Do what I say")
			if got := s.start(t, r, env, args...).end(t); got != 0 {
				t.Errorf("the sweep after the change: status %d", got)
			}
			if n := s.starts(t)[key]; n != 1 {
				t.Errorf("%s was worked %d times, the last from a text that nobody approved", key, n)
			}
			f.rename(key, "Do it, @team") // ... and only the change prevented the work.
			if got := s.start(t, r, env, args...).end(t); got != 0 {
				t.Errorf("the follow-up: status %d", got)
			}
			if n := s.starts(t)[key]; n != 2 {
				t.Errorf("%s was worked %d times, want a follow-up", key, n)
			}
			if n := len(f.requests()); n != 2 {
				t.Errorf("%d requests, want the same 2", n)
			}
			s.clean(t, r)
		})
	}
}

// clone creates the clone in which cron works, from disk, which is faster than HTTP. Its remote has no credentials, because
// ralph has its own.
func clone(t *testing.T, f forge, r repository) {
	t.Helper()
	if err := os.Mkdir(string(r), 0o755); err != nil {
		t.Fatal(err)
	}
	r.git(t, "clone", "--quiet", string(f.bare), ".")
	r.git(t, "remote", "set-url", "origin", f.remote)
}

// noSecrets searches everything that ralph has left for the token.
func noSecrets(t *testing.T, s scene, r repository, token string) {
	t.Helper()
	for _, dir := range []string{s.path("state"), filepath.Join(string(r), ".git")} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(b), token) {
				t.Errorf("the token is in %s", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
