package gitlab

import (
	"fmt"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/token"
)

// BenchmarkList measures one listing of a new backlog and of an unchanged one.
func BenchmarkList(b *testing.B) {
	for _, size := range []int{10, 100, 1000, 10000} {
		for _, state := range []string{"new", "unchanged"} {
			b.Run(fmt.Sprintf("%d-%s", size, state), func(b *testing.B) { benchmarkList(b, size, state == "new") })
		}
	}
}

func benchmarkList(b *testing.B, size int, fresh bool) {
	s := gitlabtest.New(b)
	ralph, p := s.AddUser(gitlabtest.User{Username: "ralph"}), s.AddProject(path)
	p.SetMember(ralph, gitlabtest.Developer)
	s.AddToken(ralph, secret, time.Time{}, "api")
	for n := range size {
		p.AddIssue(gitlabtest.Issue{Title: fmt.Sprint(n), Author: ralph, Labels: []string{"no-human"}})
	}
	open := func() *Tracker {
		tr, err := New(Config{Settings: tracker.Settings{
			Project: "http://" + s.Host() + "/" + path, BaseURL: s.URL, Token: token.Fixed(secret), StateDir: b.TempDir(),
			MarkerKey: []byte("a key of sixteen bytes at least"),
		}})
		if err != nil {
			b.Fatal(err)
		}
		return tr
	}
	list := func(tr *Tracker) {
		if l, err := tr.List(b.Context(), tracker.Query{}); err != nil || len(l.Issues) != size {
			b.Fatalf("listed %d issues, %v; want %d", len(l.Issues), err, size)
		}
	}
	tr := open()
	defer func() { tr.Close() }()
	if !fresh {
		list(tr)
	}
	s.Forget()
	b.ResetTimer()
	for range b.N {
		if fresh {
			tr.Close()
			tr = open()
		}
		list(tr)
	}
	full := 0
	for _, c := range s.Calls() {
		if c.Status != 304 {
			full++
		}
	}
	b.ReportMetric(float64(len(s.Calls()))/float64(b.N), "calls/op")
	b.ReportMetric(float64(full)/float64(b.N), "full/op")
}
