package github_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: backlog})
}

func backlog(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	t.Helper()
	s := githubtest.New(t)
	b := trackertest.Backlog{}
	for _, seed := range seeds {
		i := githubtest.Issue{Title: seed.Title, Body: seed.Body, Author: seed.Author, Labels: seed.Labels, Closed: seed.Closed, Created: seed.Created}
		for _, n := range seed.BlockedBy {
			i.BlockedBy = append(i.BlockedBy, n+1)
		}
		n := s.AddIssue(i)
		b.Keys = append(b.Keys, strconv.Itoa(n))
	}
	c := configOf(s)
	c.CacheDir = t.TempDir()
	c.Priorities = map[string]int{"type: bug": 2}
	b.Tracker = open(t, c)
	number := func(t *testing.T, key string) int {
		t.Helper()
		n, err := strconv.Atoi(key)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	b.Reports = func(t *testing.T, key string) (out []string) {
		for _, c := range s.Issue(number(t, key)).Comments {
			if text, ours := unmarked(c.Body); ours && c.Author == githubtest.Bot {
				out = append(out, text)
			}
		}
		return out
	}
	b.Version = func(t *testing.T, key string) string {
		i := s.Issue(number(t, key))
		return fmt.Sprint(i.Updated.UnixNano(), i.Labels, i.Closed, len(i.Comments))
	}
	return b
}
