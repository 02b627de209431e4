package github_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: backlog, Commands: true, WithToken: withToken})
}

func withToken(t *testing.T, source tracker.TokenSource) tracker.Tracker {
	c := configOf(githubtest.New(t))
	c.Token = source
	return open(t, c)
}

func turns(s *githubtest.Server) map[trackertest.Turn]func(string) {
	issue := func(change func(*githubtest.Issue)) func(string) {
		return func(key string) {
			n, _ := strconv.Atoi(key) // of this test's own
			s.Do(n, func(i *githubtest.Issue, _ time.Time) { change(i) })
		}
	}
	return map[trackertest.Turn]func(string){
		trackertest.Transferred: issue(func(i *githubtest.Issue) { i.Moved = "other/place" }),
		trackertest.Unseen:      issue(func(i *githubtest.Issue) { i.Moved, i.Unseen = "other/place", true }),
		trackertest.Deleted:     issue(func(i *githubtest.Issue) { i.Deleted = true }),
		trackertest.Renamed:     func(string) { s.Rename("acme/gadgets") },
		trackertest.Hidden: func(string) {
			s.SetRepo(true, false, false)
			s.SetPermission(githubtest.Bot, "none")
		},
		trackertest.NoIssues: func(string) { s.SetRepo(false, false, true) },
		trackertest.Revoked:  func(string) { s.Revoke(githubtest.Token) },
		trackertest.Archived: func(string) { s.SetRepo(false, true, false) },
		trackertest.Demoted:  func(string) { s.SetPermission(githubtest.Bot, "read") },
	}
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
	c.StateDir = t.TempDir()
	c.Priorities = map[string]int{"type: bug": 2}
	b.Tracker = open(t, c)
	b.Turns = turns(s)
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
	b.Talk = talk(s, func(t *testing.T) tracker.Tracker { return open(t, configOf(s)) })
	return b
}

func talk(s *githubtest.Server, again func(t *testing.T) tracker.Tracker) *trackertest.Talk {
	who := func(trusted bool) string {
		if trusted {
			return "ada"
		}
		return "mallory"
	}
	remark := func(thread string) int64 {
		n, _ := strconv.ParseInt(strings.TrimPrefix(thread, "PRRT_"), 10, 64) // of this test's own
		return n
	}
	return &trackertest.Talk{
		Again: again,
		Say: func(_ *testing.T, trusted bool, number int, _ bool, body string) string {
			return fmt.Sprintf("IC_%d", s.AddComment(number, who(trusted), body))
		},
		Remark: func(_ *testing.T, trusted bool, request int, body string) string {
			remark := githubtest.Remark{Author: who(trusted), Path: "a.go", Line: 3, Body: body}
			r := s.AddReview(request, githubtest.Review{Author: who(trusted), State: "COMMENTED", Remarks: []githubtest.Remark{remark}})
			return fmt.Sprintf("PRRT_%d", r.Remarks[0].ID)
		},
		Reply: func(_ *testing.T, trusted bool, request int, thread, body string) string {
			return s.ReplyTo(request, remark(thread), who(trusted), body)
		},
		React: func(_ *testing.T, id, emoji string) { s.React(id, "ada", strings.ToUpper(emoji)) },
		Signs: func(_ *testing.T, id string) (signs []string) {
			for _, r := range s.Reactions(id) {
				if emoji, ours := strings.CutSuffix(r, " by "+githubtest.Bot); ours {
					signs = append(signs, strings.ToLower(emoji))
				}
			}
			return signs
		},
		Texts: func(_ *testing.T, number int, _ bool) (texts []string) {
			for _, c := range s.Issue(number).Comments {
				if c.Author == githubtest.Bot {
					texts = append(texts, c.Body)
				}
			}
			return texts
		},
		Thread: func(_ *testing.T, request int, thread string) []string { return s.Replies(request, remark(thread)) },
		Foreign: func(*testing.T) int {
			return s.AddPull(githubtest.Issue{Title: "Mine", Author: "ada"}, githubtest.Pull{Head: "ralph/9"})
		},
	}
}
