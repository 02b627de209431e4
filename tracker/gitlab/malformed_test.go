package gitlab

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// on makes the calls of one method and path suffix fail.
func on(method, path string, f gitlabtest.Fault) func(gitlabtest.Call) *gitlabtest.Fault {
	return func(c gitlabtest.Call) *gitlabtest.Fault {
		if c.Method == method && strings.HasSuffix(c.Path, path) {
			return &f
		}
		return nil
	}
}

// looks are all reads of ralph.
func looks() map[string]func(*testing.T, *rig) error {
	return map[string]func(*testing.T, *rig) error{
		"List": func(t *testing.T, r *rig) error {
			l, err := r.List(t.Context(), tracker.Query{})
			if err == nil && len(l.Issues) < 2 && len(l.Problems) == 0 {
				t.Errorf("listed %v: an issue is lost without a word", l.Issues)
			}
			return err
		},
		"Get": func(t *testing.T, r *rig) error {
			i, err := r.Get(t.Context(), "1")
			if err == nil && (i.Title != "x" || len(i.Labels) != 1 || len(i.Comments) != 1 || len(i.BlockedBy) != 2) {
				t.Errorf("read %+v", i)
			}
			return err
		},
		"Approved": func(t *testing.T, r *rig) error {
			i, err := r.Get(t.Context(), "1")
			if err == nil {
				_, err = r.Approved(t.Context(), i, "no-human")
			}
			return err
		},
		"FollowUps": func(t *testing.T, r *rig) error {
			f, err := r.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
			if err == nil && len(f) != 1 {
				t.Errorf("follow-ups %+v, want one", f)
			}
			return err
		},
		"Commands": func(t *testing.T, r *rig) error {
			list, err := r.Commands(t.Context(), "ralph/")
			if err == nil && len(list) != 2 {
				t.Errorf("commands %+v, want two", list)
			}
			return err
		},
		"Review": func(t *testing.T, r *rig) error {
			f, err := r.Review(t.Context(), "ralph/2")
			if err == nil && len(f.Threads) != 1 {
				t.Errorf("review %+v, want one thread", f)
			}
			return err
		},
	}
}

func readable(t *testing.T) *rig {
	t.Helper()
	r := faultRig(t, 0)
	r.project.AddMerge(gitlabtest.Merge{Title: "Two", Source: "ralph/2", Target: "main", Author: r.ralph, SHA: strings.Repeat("a", 40)})
	r.project.Comment(r.ada, 1, "/ralph explain", false)
	r.project.NoteOn(2, r.ada, "/ralph explain")
	r.project.Discuss(2, gitlabtest.Thread{By: r.ada, Body: "Why?", Resolvable: true})
	r.project.Run(2, "failed", gitlabtest.Job{Name: "tests", Status: "failed", Trace: "boom\n"})
	return r
}

// TestLiesAreUnavailable: an answer without content is requested again. If it stays so the tracker is unavailable: the
// result is never an empty backlog, a lost label, an approval or a missing issue.
func TestLiesAreUnavailable(t *testing.T) {
	t.Parallel()
	lies := []string{"", "null", "{}", "[null]", "[{}]", `{"iid": "one", "id": "x", "labels": {}}`, `[[`, "<html>"}
	for name, look := range looks() {
		plain := readable(t)
		if err := look(t, plain); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		paths := map[string]bool{}
		for _, c := range plain.server.Calls() {
			paths[c.Path] = true
		}
		for path := range paths {
			if strings.HasSuffix(path, "/trace") { // text, which has no form
				continue
			}
			if strings.HasSuffix(path, "/members/all") { // then each is asked about: see TestListOfMembers
				continue
			}
			t.Run(fmt.Sprint(name, path), func(t *testing.T) {
				t.Parallel()
				for _, body := range lies {
					if strings.HasSuffix(path, "/issues") && strings.HasPrefix(body, "[") && body != "[[" {
						continue // an issue of a listing that cannot be read is a problem of its own
					}
					r := readable(t)
					r.server.Inject(on(http.MethodGet, path, gitlabtest.Fault{Status: http.StatusOK, Body: body}))
					err := look(t, r)
					var away *tracker.UnavailableError
					if !errors.As(err, &away) {
						t.Errorf("answer %q: %v, want *UnavailableError", body, err)
					}
				}
			})
		}
	}
}

// TestRefusedEverywhere: a refused token stops the sweep, whatever ralph was about to do.
func TestRefusedEverywhere(t *testing.T) {
	t.Parallel()
	for name, look := range looks() {
		plain := readable(t)
		_ = look(t, plain)
		for n, c := range plain.server.Calls() {
			r := readable(t)
			r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
				if c.N != n+1 {
					return nil
				}
				return &gitlabtest.Fault{Status: http.StatusUnauthorized, Body: `{"message":"401 Unauthorized"}`}
			})
			var refused *tracker.RefusedError
			if err := look(t, r); !errors.As(err, &refused) {
				t.Errorf("%s, 401 at call %d (%s): %v, want *RefusedError", name, n+1, c.Path, err)
			}
		}
	}
}

// TestLateToShow: an issue that is not found is requested again before it counts as gone.
func TestLateToShow(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		for _, times := range []int{1, 2} {
			r := newRig(t)
			r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada})
			var left atomic.Int64
			left.Store(int64(times))
			r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
				if strings.HasSuffix(c.Path, "/issues/1") && left.Add(-1) >= 0 {
					return &gitlabtest.Fault{Status: status, Body: `{"message":"404 Not found"}`}
				}
				return nil
			})
			_, err := r.Get(t.Context(), "1")
			if times == 1 && err != nil || times == 2 && !errors.Is(err, tracker.ErrNotFound) {
				t.Errorf("Get after %d answers %d: %v", times, status, err)
			}
		}
	}
}

// TestLateBelowTheIssue: when only a part of an issue is not found, the issue is not gone.
func TestLateBelowTheIssue(t *testing.T) {
	t.Parallel()
	report := func(r *rig) error { return r.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"}) }
	change := func(r *rig) error {
		return r.Change(t.Context(), "1", tracker.Change{AddLabels: []string{"x"}, RemoveLabels: []string{"no-human"}})
	}
	for _, c := range []struct {
		method, path string
		do           func(*rig) error
	}{
		{http.MethodGet, "/resource_label_events", func(r *rig) error { return looks()["Approved"](t, r) }},
		{http.MethodGet, "/notes", func(r *rig) error { return looks()["Get"](t, r) }},
		{http.MethodGet, "/notes", report},
		{http.MethodPost, "/notes", report},
		{http.MethodPut, "/issues/1", change},
	} {
		for _, status := range []int{http.StatusNotFound, http.StatusGone} {
			r := faultRig(t, 0)
			r.server.Inject(on(c.method, c.path, gitlabtest.Fault{Status: status, Body: `{"message":"404 Not found"}`}))
			if err := c.do(r); err == nil || errors.Is(err, tracker.ErrNotFound) {
				t.Errorf("%s %s answers %d: %v, want an error that leaves the issue where it is", c.method, c.path, status, err)
			}
		}
	}
}

// TestUnbelievedWrite: an answer that does not show the change is a failure.
func TestUnbelievedWrite(t *testing.T) {
	t.Parallel()
	open := `{"iid":1,"project_id":7,"state":"opened","labels":[]}`
	other := `{"iid":2,"project_id":7,"state":"closed","labels":["In-Review"]}`
	request := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix", Body: "Closes #1"}
	for _, c := range []struct {
		method, path, body string
		do                 func(*rig) error
	}{
		{http.MethodPut, "/issues/1", open, func(r *rig) error { return r.Change(t.Context(), "1", tracker.Change{Close: true}) }},
		{http.MethodPut, "/issues/1", other, func(r *rig) error { return r.Change(t.Context(), "1", tracker.Change{Close: true}) }},
		{http.MethodPost, "/notes", "{}", func(r *rig) error { return r.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "x"}) }},
		{http.MethodPost, "/merge_requests", "{}", func(r *rig) error { _, err := r.OpenRequest(t.Context(), request); return err }},
		{http.MethodPost, "/merge_requests", "null", func(r *rig) error { _, err := r.OpenRequest(t.Context(), request); return err }},
		{http.MethodPost, "/merge_requests", `{"iid":1,"state":"opened","source_branch":"ralph/1"}`, func(r *rig) error {
			_, err := r.OpenRequest(t.Context(), request)
			return err
		}},
	} {
		r := faultRig(t, 0)
		r.server.Inject(on(c.method, c.path, gitlabtest.Fault{Status: http.StatusOK, Body: c.body}))
		var away *tracker.UnavailableError
		if err := c.do(r); !errors.As(err, &away) {
			t.Errorf("%s %s answers %s: %v, want *UnavailableError", c.method, c.path, c.body, err)
		}
	}
}
