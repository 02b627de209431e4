package github_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// BenchmarkList measures one listing: requests that GitHub counts, all requests, and time, for a backlog that is new,
// unchanged, and changed in one issue.
func BenchmarkList(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000} {
		s := githubtest.New(b)
		for i := range n {
			s.AddIssue(githubtest.Issue{Title: fmt.Sprint("Issue ", i), Body: "Text.", Labels: []string{"no-human"}})
		}
		c := configOf(s)
		c.StateDir = b.TempDir()
		once := func(b *testing.B) (calls []githubtest.Call) {
			c.HTTP.Base = &http.Transport{}
			g, err := github.New(c)
			if err != nil {
				b.Fatal(err)
			}
			s.Calls()
			l, err := g.List(b.Context(), tracker.Query{Labels: []string{"no-human"}})
			if err != nil || len(l.Issues) != n {
				b.Fatalf("List: %d issues, %v", len(l.Issues), err)
			}
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
			return s.Calls()
		}
		list := func(b *testing.B, before func()) {
			counted, all := 0, 0
			c.StateDir = b.TempDir()
			once(b)
			for b.Loop() {
				before()
				calls := once(b)
				all += len(calls)
				for _, call := range calls {
					if call.Status != http.StatusNotModified {
						counted++
					}
				}
			}
			b.ReportMetric(float64(counted)/float64(b.N), "counted/op")
			b.ReportMetric(float64(all)/float64(b.N), "requests/op")
		}
		b.Run(fmt.Sprint("issues=", n, "/new"), func(b *testing.B) {
			list(b, func() { c.StateDir = b.TempDir() })
		})
		b.Run(fmt.Sprint("issues=", n, "/unchanged"), func(b *testing.B) { list(b, func() {}) })
		b.Run(fmt.Sprint("issues=", n, "/one-changed"), func(b *testing.B) {
			list(b, func() { s.Do(n/2, func(i *githubtest.Issue, now time.Time) { i.Title = now.String() }) })
		})
	}
}
