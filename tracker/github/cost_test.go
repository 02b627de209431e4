package github_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestCosts(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	trackertest.Cost{
		Forge: g, Calls: func() int { return len(s.Calls()) },
		Issues: func(n int) (keys []string) {
			for range n {
				keys = append(keys, fmt.Sprint(s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})))
			}
			return keys
		},
		Talk: func(key string) {
			n, _ := strconv.Atoi(key) // the server's own
			s.AddComment(n, "mallory", "/ralph fresh")
		},
	}.Check(t, "../../docs/forges.md", "GitHub")
}
