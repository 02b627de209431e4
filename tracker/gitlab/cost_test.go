package gitlab

import (
	"fmt"
	"testing"

	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestCosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	trackertest.Cost{
		Forge: r, Calls: func() int {
			defer r.server.Forget()
			return len(r.server.Calls())
		},
		Issues: func(n int) (keys []string) {
			for range n {
				iid := r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada})
				r.project.Label(r.ada, iid, "no-human")
				keys = append(keys, fmt.Sprint(iid))
			}
			return keys
		},
		Talk: func(key string) { r.project.Comment(r.eve, number(key), "/ralph fresh", false) },
	}.Check(t, "../../docs/forges.md", "GitLab")
}
