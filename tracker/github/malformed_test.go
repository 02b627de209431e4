package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// lies are success answers without the expected content.
func lies() []string {
	return []string{"", "null", "{}", "[null]", "[{}]", `{"number": "one", "id": "x", "labels": {}, "data": 5}`, `[[`, "<html>"}
}

// looks are all reads of ralph.
func looks() map[string]func(*testing.T, *github.Tracker) error {
	return map[string]func(*testing.T, *github.Tracker) error{
		"List": func(t *testing.T, g *github.Tracker) error {
			l, err := g.List(t.Context(), tracker.Query{})
			if err == nil && len(l.Issues) < 2 && len(l.Problems) == 0 {
				t.Errorf("listed %v, problems %v: an issue is lost without a word", l.Issues, l.Problems)
			}
			return err
		},
		"Get": func(t *testing.T, g *github.Tracker) error {
			i, err := g.Get(t.Context(), "1")
			if err == nil && (i.Title != "One" || len(i.Labels) != 1 || len(i.Comments) != 1 || len(i.BlockedBy) != 1) {
				t.Errorf("read %+v", i)
			}
			return err
		},
		"Approved": func(t *testing.T, g *github.Tracker) error {
			i := tracker.Issue{Key: "1"}
			by, err := g.Approved(t.Context(), i, "no-human")
			if err == nil {
				t.Errorf("approved by %q, though mallory edited the text", by)
			}
			return err
		},
		"FollowUps": func(t *testing.T, g *github.Tracker) error {
			f, err := g.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
			if err == nil && len(f) != 1 {
				t.Errorf("follow-ups %+v, want one", f)
			}
			return err
		},
		"Commands": func(t *testing.T, g *github.Tracker) error {
			list, err := g.Commands(t.Context(), "ralph/")
			if err == nil && len(list) != 2 {
				t.Errorf("commands %+v, want two", list)
			}
			return err
		},
		"Review": func(t *testing.T, g *github.Tracker) error {
			f, err := g.Review(t.Context(), "ralph/2")
			if err == nil && len(f.Threads) != 1 {
				t.Errorf("review %+v, want one thread", f)
			}
			return err
		},
	}
}

// readable is a project with every kind of object that ralph reads.
func readable(t *testing.T) (*githubtest.Server, *github.Tracker) {
	t.Helper()
	s := githubtest.New(t)
	s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}, BlockedBy: []int{2}})
	s.AddIssue(githubtest.Issue{Title: "Two"})
	s.AddComment(1, "ada", "Please.")
	s.Do(1, func(i *githubtest.Issue, at now) {
		i.Edits = append(i.Edits, githubtest.Edit{By: "mallory", At: at})
	})
	s.AddPull(githubtest.Issue{Title: "Two", Author: githubtest.Bot}, githubtest.Pull{Head: "ralph/2", SHA: strings.Repeat("a", 40)})
	s.AddComment(1, "ada", "/ralph explain")
	s.AddComment(3, "ada", "/ralph explain")
	remark := githubtest.Remark{Author: "ada", Path: "a.go", Line: 1, Body: "Why?"}
	s.AddReview(3, githubtest.Review{Author: "ada", State: "COMMENTED", Remarks: []githubtest.Remark{remark}})
	s.Require("tests")
	s.SetCheck(strings.Repeat("a", 40), githubtest.Check{Name: "tests", Status: "completed", Conclusion: "failure"}, "")
	return s, open(t, configOf(s))
}

// TestLiesAreUnavailable: an answer without content is requested again. If it stays so the tracker is unavailable: the
// result is never an empty backlog, a lost label, an approval or a missing issue.
func TestLiesAreUnavailable(t *testing.T) {
	t.Parallel()
	for name, look := range looks() {
		s, g := readable(t)
		if err := look(t, g); err != nil && name != "Approved" {
			t.Fatalf("%s: %v", name, err)
		}
		paths := map[string]bool{}
		for _, c := range s.Calls() {
			paths[c.Path] = true
		}
		for path := range paths {
			if strings.HasSuffix(path, "/permission") { // see TestNoPermissionSaid
				continue
			}
			if strings.HasSuffix(path, "/collaborators") { // then each is asked about: see TestListOfPeople
				continue
			}
			t.Run(fmt.Sprint(name, path), func(t *testing.T) {
				t.Parallel()
				for _, body := range lies() {
					s, g := readable(t)
					s.Inject(only(path, githubtest.Fault{Status: http.StatusOK, Body: body}))
					err := look(t, g)
					var away *tracker.UnavailableError
					if problem := strings.HasSuffix(path, "/issues") && strings.HasPrefix(body, "[") && body != "[["; problem {
						continue // an issue of a listing that cannot be read is a problem of its own
					}
					if !errors.As(err, &away) {
						t.Errorf("answer %q: %v, want *UnavailableError", body, err)
					}
				}
			})
		}
	}
}

// TestNoPermissionSaid: an answer without a permission gives none.
func TestNoPermissionSaid(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"{}", `{"permission":""}`, `{"permission":"admin"}`, `{"permission":"admin","user":{}}`, `{"permission":"admin","user":null}`} {
		s := githubtest.New(t)
		s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
		s.AddComment(1, "ada", "Please.")
		g := open(t, configOf(s))
		refused := only("/collaborators", githubtest.Fault{Status: http.StatusForbidden, Body: `{"message":"Must have push access"}`})
		about := only("/permission", githubtest.Fault{Status: http.StatusOK, Body: body})
		s.Inject(func(n int, r *http.Request) *githubtest.Fault {
			if f := refused(n, r); f != nil {
				return f
			}
			return about(n, r)
		})
		i, err := g.Get(t.Context(), "1")
		if err != nil || i.Comments[0].Trusted {
			t.Errorf("%s: comment %+v, %v", body, i.Comments, err)
		}
		if _, err := g.Approved(t.Context(), i, "no-human"); err == nil || !strings.Contains(err.Error(), "no write permission") {
			t.Errorf("%s: approved: %v", body, err)
		}
	}
}

// TestRequestWithoutNumber: after an incomplete answer ralph looks whether the request exists.
func TestRequestWithoutNumber(t *testing.T) {
	t.Parallel()
	request := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix", Body: "Closes #1"}
	for _, effect := range []bool{true, false} {
		for _, body := range []string{"{}", "null", "", `{"number": 4}`, `{"number": 4, "html_url": "http://x/4", "state": "open"}`} {
			s, g := start(t)
			s.AddIssue(githubtest.Issue{Title: "One"})
			s.Inject(func(_ int, r *http.Request) *githubtest.Fault {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pulls") {
					return &githubtest.Fault{Status: http.StatusOK, Body: body, Effect: effect}
				}
				return nil
			})
			ref, err := g.OpenRequest(t.Context(), request)
			var away *tracker.UnavailableError
			switch {
			case effect && (err != nil || ref.Number != 2 || !strings.HasSuffix(ref.URL, "/pull/2")):
				t.Errorf("answer %q after the effect: %+v, %v, want the request that is there", body, ref, err)
			case !effect && !errors.As(err, &away):
				t.Errorf("answer %q without an effect: %+v, %v, want *UnavailableError", body, ref, err)
			}
			if n := len(s.Pulls()); effect != (n == 1) {
				t.Errorf("answer %q: %d requests", body, n)
			}
		}
	}
}

// TestLateToShow: an issue that is not found is requested again before it counts as gone.
func TestLateToShow(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		for _, times := range []int{1, 2} {
			s, g := start(t)
			s.AddIssue(githubtest.Issue{Title: "One"})
			var left atomic.Int64
			left.Store(int64(times))
			s.Inject(func(_ int, r *http.Request) *githubtest.Fault {
				if strings.HasSuffix(r.URL.Path, "/issues/1") && left.Add(-1) >= 0 {
					return &githubtest.Fault{Status: status, Body: `{"message":"Not Found"}`}
				}
				return nil
			})
			_, err := g.Get(t.Context(), "1")
			if times == 1 && err != nil || times == 2 && !errors.Is(err, tracker.ErrNotFound) {
				t.Errorf("Get after %d answers %d: %v", times, status, err)
			}
		}
	}
}

// TestLateBelowTheIssue: when only a part of an issue is not found, the issue is not gone.
func TestLateBelowTheIssue(t *testing.T) {
	t.Parallel()
	for path, do := range map[string]func(*github.Tracker) error{
		"/events": func(g *github.Tracker) error {
			_, err := g.Approved(t.Context(), tracker.Issue{Key: "1"}, "x")
			return err
		},
		"/comments": func(g *github.Tracker) error {
			return g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"})
		},
		"1/comments": func(g *github.Tracker) error { _, err := g.Get(t.Context(), "1"); return err },
		"/labels": func(g *github.Tracker) error {
			return g.Change(t.Context(), "1", tracker.Change{AddLabels: []string{"x"}})
		},
		"/labels/no-human": func(g *github.Tracker) error {
			return g.Change(t.Context(), "1", tracker.Change{RemoveLabels: []string{"no-human"}})
		},
	} {
		for _, status := range []int{http.StatusNotFound, http.StatusGone} {
			s, g := start(t)
			s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
			s.Inject(only(path, githubtest.Fault{Status: status, Body: `{"message":"Not Found"}`}))
			if err := do(g); err == nil || errors.Is(err, tracker.ErrNotFound) {
				t.Errorf("%s answers %d: %v, want an error that leaves the issue where it is", path, status, err)
			}
		}
	}
}

// TestUnbelievedChange: an answer that does not show the change is a failure.
func TestUnbelievedChange(t *testing.T) {
	t.Parallel()
	labelled := `[{"name":"no-human"}]`
	for name, c := range map[string]struct {
		path, body string
		change     tracker.Change
	}{
		"add":    {"/labels", labelled, tracker.Change{AddLabels: []string{"in review"}}},
		"remove": {"/labels/no-human", labelled, tracker.Change{RemoveLabels: []string{"no-human"}}},
		"null":   {"/labels/no-human", "null", tracker.Change{RemoveLabels: []string{"no-human"}}},
		"object": {"/labels/no-human", "{}", tracker.Change{RemoveLabels: []string{"no-human"}}},
	} {
		s, g := start(t)
		s.AddIssue(githubtest.Issue{Title: "One", Labels: []string{"no-human"}})
		s.Inject(only(c.path, githubtest.Fault{Status: http.StatusOK, Body: c.body}))
		var away *tracker.UnavailableError
		if err := g.Change(t.Context(), "1", c.change); !errors.As(err, &away) {
			t.Errorf("%s: %v, want *UnavailableError", name, err)
		}
	}
}

// TestRefusedEverywhere: a refused token stops the sweep, whatever ralph was about to do.
func TestRefusedEverywhere(t *testing.T) {
	t.Parallel()
	for name, look := range looks() {
		s, g := readable(t)
		s.SetCheck(strings.Repeat("a", 40), githubtest.Check{Name: "tests", Status: "completed", Conclusion: "failure", Actions: true}, "log")
		_ = look(t, g)
		for n := range s.Calls() {
			s, g := readable(t)
			s.SetCheck(strings.Repeat("a", 40), githubtest.Check{Name: "tests", Status: "completed", Conclusion: "failure", Actions: true}, "log")
			path := ""
			s.Inject(func(at int, r *http.Request) *githubtest.Fault {
				if at != n {
					return nil
				}
				path = r.URL.Path
				return &githubtest.Fault{Status: http.StatusUnauthorized, Body: `{"message":"Bad credentials"}`}
			})
			var refused *tracker.RefusedError
			if err := look(t, g); !errors.As(err, &refused) {
				t.Errorf("%s, 401 at %s: %v, want *RefusedError", name, path, err)
			}
		}
	}
}
