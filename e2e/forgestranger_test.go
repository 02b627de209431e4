package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

const appends = `
issues:
  "*":
    - - append: {path: "work-{{key}}.txt", text: "x\n"}
      - commit: "Do {{key}}"
      - say: "Done <promise>COMPLETE</promise>"
`

// strangersRequest opens a request from ralph's branch as a person who may not direct ralph. closeIt closes it.
func (f forge) strangersRequest(branch string) (closeIt func()) {
	const title, body = "Do it", "Closes #1\n\n**ralph: succeeded**"
	if f.hub != nil {
		n := f.hub.AddPull(githubtest.Issue{Title: title, Body: body, Author: "mallory"}, githubtest.Pull{Head: branch, SHA: strings.Repeat("a", 40)})
		return func() { f.hub.Do(n, func(i *githubtest.Issue, _ time.Time) { i.Closed = true }) }
	}
	mallory := f.lab.AddUser(gitlabtest.User{Username: "former"})
	n := f.project.AddMerge(gitlabtest.Merge{Title: title, Description: body, Source: branch, Target: "main", Author: mallory})
	return func() { f.project.SetMerge(n, func(m *gitlabtest.Merge) { m.State = "closed" }) }
}

// unlabel removes a label from an issue, as a person.
func (f forge) unlabel(key, label string) {
	var n int
	_, _ = fmt.Sscan(key, &n)
	if f.hub != nil {
		f.hub.Do(n, func(i *githubtest.Issue, _ time.Time) {
			i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == label })
		})
		return
	}
	f.project.Unlabel(f.lab.AddUser(gitlabtest.User{Username: "person"}), n, label)
}

// On GitHub anybody who may read can open a request from ralph's branch. Ralph never treats it as its own: a person closes
// it, and then ralph opens its own without running the agent.
func TestForgeStrangersRequest(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, repository) forge{"github": onGitHub, "gitlab": onGitLab} {
		for _, gate := range []string{"true", "false"} {
			t.Run(name+" gate "+gate, func(t *testing.T) {
				t.Parallel()
				f := open(t, newRepository(t))
				s := newScene(t, appends)
				key := f.issue("Do it", "Please.")
				r := repository(filepath.Join(t.TempDir(), "clone"))
				clone(t, f, r)
				closeIt := f.strangersRequest("ralph/" + key)
				env := append(f.env, "RALPH_WRITE_SPACING=0s", "RALPH_MAX_ITERATIONS=1", "RALPH_MAX_ATTEMPTS=1")
				work := func() { s.start(t, r, env, append([]string{"work", "--gate", gate}, f.flags...)...).end(t) }
				says := func(want ...string) {
					t.Helper()
					text := f.report(key)
					for _, w := range append(want, "who may not direct ralph; close it") {
						if !strings.Contains(text, w) {
							t.Errorf("the report lacks %q:\n%s", w, text)
						}
					}
					if strings.Contains(text, "review: ") {
						t.Errorf("the report names a request:\n%s", text)
					}
				}
				work()
				if gate == "false" {
					says("ralph: gate-failed")
				} else {
					says("ralph: waiting")
					work()
					work()
					says("ralph: failed")
				}
				if got := f.labels(key); !slices.Contains(got, "needs-human") || slices.Contains(got, "in-review") {
					t.Errorf("labels %q", got)
				}
				if n := len(f.requests()); n != 1 {
					t.Errorf("%d requests, want the stranger's alone", n)
				}
				if gate == "false" {
					return
				}
				closeIt()
				f.unlabel(key, "needs-human")
				work()
				if got := f.labels(key); !slices.Contains(got, "in-review") {
					t.Errorf("labels %q once it is closed:\n%s", got, f.report(key))
				}
				if n := s.starts(t)[key]; n != 1 {
					t.Errorf("the agent was started %d times", n)
				}
			})
		}
	}
}
