package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// wayOfOneIssue makes a run's calls for one issue, and retries each step until it succeeds, as sweeps do.
func wayOfOneIssue(ctx context.Context, tr *Tracker) error {
	const key = "1"
	steps := []func() error{
		func() error { _, err := tr.List(ctx, tracker.Query{Labels: []string{"no-human"}}); return err },
		func() error {
			i, err := tr.Get(ctx, key)
			if err != nil {
				return err
			}
			if by, err := tr.Approved(ctx, i, "no-human"); by != "" && err != nil {
				return fmt.Errorf("%w: %w", errNotApproved, err)
			}
			return err
		},
		func() error { return tr.Report(ctx, key, tracker.Report{Run: "run-1", Body: "Working."}) },
		func() error {
			_, err := tr.OpenRequest(ctx, tracker.Request{Key: key, Head: "ralph/1", Base: "main", Title: "Fix", Body: "Closes #1",
				Labels: []string{"ralph"}, Reviewers: []string{"ada"}})
			return err
		},
		func() error { return tr.Report(ctx, key, tracker.Report{Run: "run-1", Body: "Done."}) },
		func() error {
			return tr.Change(ctx, key, tracker.Change{AddLabels: []string{"in-review"}, RemoveLabels: []string{"no-human"}})
		},
		func() error { _, err := tr.FollowUps(ctx, tracker.FollowUpQuery{Prefix: "ralph/"}); return err },
	}
	for n, step := range steps {
		for try := 1; ; try++ {
			err := step()
			if err == nil {
				break
			}
			var down *tracker.UnavailableError
			var refused *tracker.RefusedError
			var failure *transport.Failure
			if !errors.As(err, &down) && !errors.As(err, &refused) && !errors.As(err, &failure) && !errors.Is(err, tracker.ErrNotFound) && !errors.Is(err, errNotApproved) {
				return fmt.Errorf("step %d: %w is of no kind that anybody knows", n, err)
			}
			if text := err.Error(); strings.Contains(text, secret) || strings.Contains(text, "\n") {
				return fmt.Errorf("step %d: error shows the token or has two lines: %q", n, text)
			}
			if try == 3 {
				return fmt.Errorf("step %d: %w", n, err)
			}
		}
	}
	return nil
}

// errNotApproved leaves an issue to the next sweep.
var errNotApproved = errors.New("not approved")

// always are the faults that each call meets.
func always() []gitlabtest.Fault {
	return []gitlabtest.Fault{
		{Reset: true}, {Reset: true, Effect: true}, {Hang: true}, {Status: 200},
		{Status: 200, Body: `[{"iid": "one", "id": {"x": 1}, "title": 7, "labels": [{"name": 3}]}, null, {}]`, Effect: true},
	}
}

// inTurn are further faults, of which each call meets two. They differ only inside package forge, which has its own
// tests.
func inTurn() []gitlabtest.Fault {
	return []gitlabtest.Fault{
		{Cut: true, Effect: true}, {Status: 200, Body: `{"id": 1, "title": "cut of`, Effect: true},
		{Status: 401, Body: `{"message":"401 Unauthorized"}`},
		{Status: 403, Body: `{"error":"insufficient_scope"}`},
		{Status: 404, Body: `{"message":"404 Not found"}`},
		{Status: 422, Body: `{"message":{"base":["x\ny"]}}`},
		{Status: 429, Body: "Retry later\n", Header: http.Header{"Retry-After": {"30"}, "Content-Type": {"text/plain"}}},
		{Status: 502, Body: "<html>\n<body>GitLab is not responding</body></html>", Header: http.Header{"Content-Type": {"text/html"}}},
		{Status: 302, Header: http.Header{"Location": {"/users/sign_in"}}},
	}
}

// faultRig is a project with everything that a run asks for.
func faultRig(t *testing.T, timeout time.Duration) *rig {
	t.Helper()
	r := newRig(t, func(c *forge.Config) { c.HTTP.Timeout = timeout })
	r.project.AddLabel("In-Review", false)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve, Description: "blocked by #2 and #9"})
	r.project.AddIssue(gitlabtest.Issue{Title: "y", Author: r.ada})
	r.project.Block(2, 1)
	r.project.Label(r.ada, 1, "no-human")
	r.project.Comment(r.grace, 1, "hello", false)
	r.project.AddMerge(gitlabtest.Merge{Title: "theirs", Description: "closes #1", Source: "x", Target: "main", Author: r.ada})
	return r
}

// TestFaultAtEveryCall makes each call of a run fail in every way, one at a time. Afterwards the issue is in the right
// state, with one report and one request.
func TestFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	plain := faultRig(t, 0)
	if err := wayOfOneIssue(t.Context(), plain.Tracker); err != nil {
		t.Fatal(err)
	}
	calls := len(plain.server.Calls())
	turns := inTurn()
	for n := 1; n <= calls; n++ {
		t.Run(fmt.Sprintf("call %d", n), func(t *testing.T) {
			t.Parallel()
			for _, f := range append(always(), turns[2*n%len(turns)], turns[(2*n+1)%len(turns)]) {
				checkFault(t, n, f)
			}
		})
	}
}

func checkFault(t *testing.T, n int, f gitlabtest.Fault) {
	t.Helper()
	timeout := time.Duration(0)
	if f.Hang {
		timeout = 100 * time.Millisecond
	}
	r := faultRig(t, timeout)
	var hit atomic.Pointer[gitlabtest.Call]
	r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
		if c.N != n {
			return nil
		}
		hit.Store(&c)
		return &f
	})
	what := func() string { c := hit.Load(); return fmt.Sprintf("%+v at %s %s?%s", f, c.Method, c.Path, c.Query) }
	if err := wayOfOneIssue(t.Context(), r.Tracker); err != nil {
		t.Errorf("%s: %v", what(), err)
		return
	}
	notes := r.project.Notes(r.ralph, 1)
	if len(notes) != 1 || !strings.HasSuffix(notes[0], "\nDone.") {
		t.Errorf("%s: reports are %q, want one that says done", what(), notes)
	}
	if diff := cmp.Diff([]string{"In-Review"}, r.project.IssueLabels(1)); diff != "" {
		t.Errorf("%s: labels (-want +got):\n%s", what(), diff)
	}
	if merges := r.project.Merges(); len(merges) != 2 || merges[1].Source != "ralph/1" || len(merges[1].Labels) != 1 || len(merges[1].Reviewers) != 1 {
		t.Errorf("%s: merge requests are %+v, want theirs and ralph's", what(), merges)
	}
}

func TestRateLimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ada})
	r.server.LimitRequests(2, time.Minute)
	var napped atomic.Int64
	r.clock.onNap = func(d time.Duration) {
		napped.Store(int64(d))
		r.server.LimitRequests(-1, 0)
	}
	if err := r.Report(t.Context(), "1", tracker.Report{Run: "run", Body: "x"}); err != nil {
		t.Fatal(err)
	}
	if d := time.Duration(napped.Load()); d < 50*time.Second || d > 70*time.Second {
		t.Errorf("waited %v, want about a minute", d)
	}
	if got := r.project.Notes(r.ralph, 1); len(got) != 1 {
		t.Errorf("notes are %q, want one", got)
	}
}

func TestRateLimitTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.LimitRequests(0, time.Hour)
	_, err := r.List(t.Context(), tracker.Query{})
	var down *tracker.UnavailableError
	if !errors.As(err, &down) || time.Until(down.Until) < 50*time.Minute {
		t.Errorf("List = %v, want *UnavailableError until in an hour", err)
	}
}

// A server that sends its answers to a login page is said so, and is no project that has moved.
func TestLoginPage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.Inject(func(gitlabtest.Call) *gitlabtest.Fault {
		return &gitlabtest.Fault{Status: 302, Header: http.Header{"Location": {r.server.URL + "/users/sign_in"}}}
	})
	_, err := r.List(t.Context(), tracker.Query{})
	if refused, ok := errors.AsType[*tracker.RefusedError](err); !ok || !strings.Contains(refused.Error(), "leads out of the API") || transport.Elsewhere(err) {
		t.Errorf("%v", err)
	}
}
