package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// People move, hide or rename things while ralph works. No agent is paid twice and no commit is lost. A problem of one issue
// does not affect the others, and a problem of the project is reported in every sweep until it is solved.
func TestMovedWhileWorked(t *testing.T) {
	t.Parallel()
	onIssue := func(change func(*githubtest.Issue)) func(forge, string) {
		return func(f forge, key string) {
			n, _ := strconv.Atoi(key) // the key of the test's own issue is a number
			f.hub.Do(n, func(i *githubtest.Issue, _ time.Time) { change(i) })
		}
	}
	for name, c := range map[string]struct {
		open     func(*testing.T, repository) forge
		at       string // suffix of the path of the write before which it happens; empty: before the first sweep
		do, undo func(f forge, key string)
		says     string // output of each later sweep until it is undone
		ended    bool   // the issue is not finished
	}{
		"transferred before the request": {onGitHub, "/pulls", onIssue(func(i *githubtest.Issue) { i.Moved = "other/place" }), nil, "", true},
		"transferred before the report":  {onGitHub, "/issues/1/comments", onIssue(func(i *githubtest.Issue) { i.Moved = "other/place" }), nil, "", true},
		"deleted before its labels":      {onGitHub, "/issues/1/labels", onIssue(func(i *githubtest.Issue) { i.Deleted = true }), nil, "", true},
		"a discussion before the report": {onGitHub, "/issues/1/comments", onIssue(func(i *githubtest.Issue) { i.Closed, i.Converted = true, true }), nil, "", true},
		"renamed before the request": {
			onGitHub, "/pulls", func(f forge, _ string) { f.hub.Rename("acme/gadgets") }, func(f forge, _ string) { f.hub.Rename("acme/widgets") },
			`is "acme/gadgets" now; update the remote's address`, false,
		},
		"renamed on GitLab": {
			onGitLab, "/merge_requests", func(f forge, _ string) { f.project.MoveTo("group/gadgets") }, func(f forge, _ string) { f.project.MoveTo("group/sub/project") },
			`is "group/gadgets" now; update the remote's address`, false,
		},
		"hidden before the report": {
			onGitLab, "/issues/1/notes", func(f forge, _ string) { f.project.SetProject(func(p *gitlabtest.Project) { p.Hidden = true }) },
			func(f forge, _ string) { f.project.SetProject(func(p *gitlabtest.Project) { p.Hidden = false }) }, "not found", false,
		},
		"no base for the request": {
			onGitHub, "", func(f forge, _ string) { _, _ = f.bare.try("branch", "-m", "main", "trunk") },
			func(f forge, _ string) { _, _ = f.bare.try("branch", "main", "trunk") }, "origin has no branch main", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFaultScene(t, c.open)
			other := f.issue("Do it too", "Please.")
			var once sync.Once
			f.server.Inject(func(call forgetest.Call) *forgetest.Fault {
				if c.at != "" && call.Method == http.MethodPost && strings.HasSuffix(call.Path, c.at) {
					once.Do(func() { c.do(f.forge, f.key) })
				}
				return nil
			})
			if c.at == "" {
				c.do(f.forge, f.key)
			}
			env := append(slices.Clone(f.forge.env), "RALPH_WRITE_SPACING=0s")
			sweep := func() (status int, said string) {
				p := f.start(t, f.clone, env, append([]string{"work", "--parallel", "1"}, f.flags...)...)
				status = p.end(t)
				return status, p.out.String()
			}
			for n := range 4 {
				status, said := sweep()
				if c.undo != nil && (n > 0 || c.at == "") && (status != 4 || !strings.Contains(said, c.says)) {
					t.Errorf("sweep %d has status %d and does not say %q", n, status, c.says)
				}
			}
			if c.undo != nil {
				c.undo(f.forge, f.key)
				sweep()
				sweep()
			}
			want := map[string]int{f.key: 1, other: 1}
			if got := f.starts(t); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("agents were started %v, want %v", got, want)
			}
			if got := f.labels(other); !slices.Contains(got, "in-review") {
				t.Errorf("the other issue has labels %q", got)
			}
			if got := f.labels(f.key); !c.ended && !slices.Contains(got, "in-review") {
				t.Errorf("the issue has labels %q", got)
			}
			if got := f.clone.lines(t, "for-each-ref", "--format=%(refname)", "refs/heads/ralph/"+f.key); len(got) != 1 {
				t.Error("its commits are gone")
			}
			f.scene.clean(t, f.clone)
		})
	}
}
