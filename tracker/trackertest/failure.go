package trackertest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// reads returns all reads of a tracker, for the project of [Host.readableSite]. Each checks its result if there is no error.
func reads(t *testing.T, approved tracker.Issue) map[string]func(Forge) error {
	prefix := tracker.FollowUpQuery{Prefix: "ralph/"}
	return map[string]func(Forge) error{
		"List": func(f Forge) error {
			l, err := f.List(t.Context(), tracker.Query{})
			if err == nil && len(l.Issues) < 2 && len(l.Problems) == 0 {
				t.Errorf("listed %v: an issue is lost without a word", l.Issues)
			}
			return err
		},
		"Get": func(f Forge) error {
			i, err := f.Get(t.Context(), "1")
			if err == nil && (i.Title != "One" || len(i.Labels) != 1 || len(i.Comments) != 1 || len(i.BlockedBy) != 1) {
				t.Errorf("read %+v", i)
			}
			return err
		},
		"Approved": func(f Forge) error {
			_, err := f.Approved(t.Context(), approved, "no-human")
			return err
		},
		"FollowUps": func(f Forge) error {
			list, err := f.FollowUps(t.Context(), prefix)
			if err == nil && len(list) != 1 {
				t.Errorf("follow-ups %+v, want one", list)
			}
			return err
		},
		"Commands": func(f Forge) error {
			list, err := f.Commands(t.Context(), "ralph/")
			if err == nil && len(list) != 2 {
				t.Errorf("commands %+v, want two", list)
			}
			return err
		},
		"Review": func(f Forge) error {
			is, err := f.Review(t.Context(), "ralph/2")
			if err == nil && len(is.Threads) != 1 {
				t.Errorf("review %+v, want one thread", is)
			}
			return err
		},
	}
}

// readableSite returns a project with every kind of object that ralph reads, and its issue 1.
func (h Host) readableSite(t *testing.T) (*Site, tracker.Issue) {
	t.Helper()
	s := h.New(t)
	s.Admit(Person{Name: "heidi", Writes: true})
	s.Issue(Seed{Title: "One", Body: "Text.\n\nBlocked by #2", Author: "mallory"})
	s.Issue(Seed{Title: "Two"})
	s.Label("ada", 1, "no-human", true)
	s.Edit("heidi", 1, "", "Better.\n\nBlocked by #2")
	s.Say("ada", 1, false, "Please.")
	n := s.Request(Request{By: s.Ralph, Head: "ralph/2", Title: "Two", Commit: strings.Repeat("a", 40)})
	s.Say("ada", 1, false, "/ralph explain")
	s.Say("ada", n, true, "/ralph explain")
	s.Remark("ada", n, "Why?")
	s.Request(Request{By: "ada", Head: "x", Title: "Mine", Body: "Closes #2"})
	s.Amend(n, func(r *Request) { r.Failed = "tests" })
	return s, get(t, Backlog{Tracker: s.Open(t)}, "1")
}

// eachRead calls check for each read, with its calls without faults, and with a function that returns the read on a new tracker.
func (h Host) eachRead(t *testing.T, check func(t *testing.T, plain []forgetest.Call, again func(t *testing.T) (look func() error, w *forgetest.Server))) {
	s, issue := h.readableSite(t)
	for name := range reads(t, issue) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again := func(t *testing.T) (func() error, *forgetest.Server) {
				f, w := s.openWired(t)
				return func() error { return reads(t, issue)[name](f) }, w
			}
			look, w := again(t)
			if err := look(); err != nil {
				t.Fatal(err)
			}
			check(t, w.Calls(), again)
		})
	}
}

// emptyAnswers: an answer without content is requested again. If it stays so, the tracker is unavailable: the result is never an empty
// backlog, a lost label, an approval or a missing issue.
func emptyAnswers(t *testing.T, h Host) {
	people, plain := regexp.MustCompile(h.People), regexp.MustCompile(h.Plain)
	h.eachRead(t, func(t *testing.T, calls []forgetest.Call, again func(*testing.T) (func() error, *forgetest.Server)) {
		for path := range paths(calls) {
			if people.MatchString(path) && strings.HasSuffix(path, h.PeopleList) { // then each account is looked up: see peopleUnknown
				continue
			}
			if plain.MatchString(path) {
				continue
			}
			for _, body := range []string{
				"", "null", "{}", "[null]", "[{}]",
				`{"iid": "one", "number": "one", "id": "x", "labels": {}, "data": 5}`, `[[`, "<html>",
			} {
				if strings.HasSuffix(path, "/issues") && strings.HasPrefix(body, "[") && body != "[[" {
					continue // an unreadable issue of a listing is a Problem
				}
				look, w := again(t)
				w.Inject(func(c forgetest.Call) *forgetest.Fault {
					if c.Path != path {
						return nil
					}
					return &forgetest.Fault{Status: http.StatusOK, Body: body}
				})
				if err := look(); ClassOf(err) != Away {
					t.Errorf("%s answers %q: %v, want *UnavailableError", path, body, err)
				}
			}
		}
	})
}

func paths(calls []forgetest.Call) map[string]bool {
	out := map[string]bool{}
	for _, c := range calls {
		out[c.Path] = true
	}
	return out
}

// faultAtCall injects a fault into the n-th call.
func faultAtCall(n int, f forgetest.Fault) func(forgetest.Call) *forgetest.Fault {
	return func(c forgetest.Call) *forgetest.Fault {
		if c.N == n {
			return &f
		}
		return nil
	}
}

// tokenRefused: a refused token stops the sweep, at every call.
func tokenRefused(t *testing.T, h Host) {
	h.eachRead(t, func(t *testing.T, calls []forgetest.Call, again func(*testing.T) (func() error, *forgetest.Server)) {
		for n, c := range calls {
			look, w := again(t)
			w.Inject(faultAtCall(n, forgetest.Fault{Status: http.StatusUnauthorized, Body: `{"message":"Bad credentials"}`}))
			if err := look(); ClassOf(err) != Stop {
				t.Errorf("401 at call %d, such as %s: %v, want *RefusedError", n, c.Path, err)
			}
		}
	})
}

// lateIssue: an issue that is not found is requested again before it counts as gone.
func lateIssue(t *testing.T, h Host) {
	s := h.New(t)
	s.Issue(Seed{Title: "One"})
	for _, status := range []int{http.StatusNotFound, http.StatusGone} {
		for times, want := range map[int]Class{1: Fine, 2: Gone} {
			f, w := s.openWired(t)
			left := times
			w.Inject(func(c forgetest.Call) *forgetest.Fault {
				if left--; !strings.HasSuffix(c.Path, "/issues/1") || left < 0 {
					left++
					return nil
				}
				return &forgetest.Fault{Status: status, Body: `{"message":"Not Found"}`}
			})
			if _, err := f.Get(t.Context(), "1"); ClassOf(err) != want {
				t.Errorf("Get after %d answers %d: %v is %q, want %q", times, status, err, ClassOf(err), want)
			}
		}
	}
}

// callRoute makes a call of the end of a run. The names are those of [Host.Routes].
func (h Host) callRoute(t *testing.T, name string, f Forge, approved tracker.Issue) error {
	t.Helper()
	request := func(head string) error {
		_, err := f.OpenRequest(t.Context(), tracker.Request{Head: head, Base: "main", Title: "Fix it", Body: "x"})
		return err
	}
	switch name {
	case "read comments":
		_, err := f.Get(t.Context(), "1")
		return err
	case "see who approved":
		_, err := f.Approved(t.Context(), approved, "no-human")
		return err
	case "find a report", "edit a report":
		return f.Report(t.Context(), "1", tracker.Report{Run: "old", Body: "y"})
	case "create a report":
		return f.Report(t.Context(), "2", tracker.Report{Run: "new", Body: "x"})
	case "add a label":
		return f.Change(t.Context(), "1", tracker.Change{AddLabels: []string{"x"}})
	case "remove a label":
		return f.Change(t.Context(), "1", tracker.Change{RemoveLabels: []string{"no-human"}})
	case "close":
		return f.Change(t.Context(), "1", tracker.Change{Close: true})
	case "open a request":
		return request("ralph/1")
	case "edit a request":
		return request("ralph/2")
	}
	t.Fatalf("the suite knows no route %q", name)
	return nil
}

// lateCalls tests the table of docs/forges.md: the meaning of a permanent refusal, for each call at the end of a run. If only a
// part of an issue is not found, the issue is not gone.
func lateCalls(t *testing.T, h Host) {
	s, issue := h.readableSite(t)
	if err := s.Open(t).Report(t.Context(), "1", tracker.Report{Run: "old", Body: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read comments", "see who approved", "find a report", "create a report", "edit a report", "add a label",
		"remove a label", "close", "open a request", "edit a request"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range []struct {
				fault forgetest.Fault
				want  Class
			}{
				{forgetest.Fault{Status: http.StatusUnauthorized, Body: `{"message":"Bad credentials"}`}, Stop},
				{forgetest.Fault{Status: http.StatusForbidden, Body: `{"message":"Resource not accessible"}`}, Stop},
				{forgetest.Fault{Status: http.StatusNotFound, Body: `{"message":"Not Found"}`}, Skip},
				{forgetest.Fault{Status: http.StatusGone, Body: `{"message":"Gone"}`}, Skip},
				{forgetest.Fault{Status: http.StatusBadRequest, Body: `{"message":"title is empty"}`}, Skip},
				{forgetest.Fault{Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed"}`}, Skip},
				{forgetest.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"86400"}}}, Away},
				{forgetest.Fault{Status: http.StatusBadGateway}, Away},
				{forgetest.Fault{Status: http.StatusOK, Body: `{}`}, Away},
				{forgetest.Fault{Status: http.StatusOK, Body: `[null]`}, Away},
				{forgetest.Fault{Cut: true}, Away},
				{forgetest.Fault{Reset: true}, Away},
			} {
				f, w := s.openWired(t)
				injected := false
				w.Inject(func(call forgetest.Call) *forgetest.Fault {
					if !h.Routes[name].matches(call) {
						return nil
					}
					injected = true
					return &c.fault
				})
				err := h.callRoute(t, name, f, issue)
				w.Inject(nil)
				if got := ClassOf(err); got != c.want || !injected {
					t.Errorf("meets (%v) %+v: %v is %q, want %q", injected, c.fault, err, got, c.want)
				}
			}
		})
	}
}

// faults returns one fault of each kind. Each can happen to any request.
func faults() []forgetest.Fault {
	html := http.Header{"Content-Type": {"text/html"}}
	other := `[{"iid": "one", "number": "one", "id": {"x": 1}, "name": 3, "title": 7, "labels": [{"name": 3}]}, null, {}]`
	return []forgetest.Fault{
		{Reset: true}, {Reset: true, Effect: true}, {Hang: true}, {Cut: true}, {Cut: true, Effect: true},
		{Status: http.StatusOK}, {Status: http.StatusOK, Effect: true}, {Status: http.StatusOK, Body: `{"id": 1, "title": "cut of`, Effect: true},
		{Status: http.StatusOK, Body: `null`, Effect: true}, {Status: http.StatusOK, Body: `{}`}, {Status: http.StatusCreated, Body: `{}`, Effect: true},
		{Status: http.StatusOK, Body: other, Effect: true},
		{Status: http.StatusInternalServerError, Body: `{"message":"Server Error"}`}, {Status: http.StatusServiceUnavailable, Effect: true},
		{Status: http.StatusBadGateway, Body: "<html>\n<body>not responding</body></html>", Header: html},
		{Status: http.StatusUnauthorized, Body: `{"message":"401 Unauthorized"}`}, {Status: http.StatusForbidden, Body: `{"error":"insufficient_scope"}`},
		{Status: http.StatusNotFound, Body: `{"message":"404 Not found"}`}, {Status: http.StatusUnprocessableEntity, Body: `{"message":"x\ny"}`},
		{Status: http.StatusForbidden, Header: http.Header{"Retry-After": {"7"}}, Body: `{"message":"You have exceeded a secondary rate limit."}`},
		{Status: http.StatusTooManyRequests, Body: `{"message":"slow down"}`},
		{Status: http.StatusTooManyRequests, Body: "Retry later\n", Header: http.Header{"Retry-After": {"30"}, "Content-Type": {"text/plain"}}},
		{Status: http.StatusFound, Header: http.Header{"Location": {"/users/sign_in"}}},
	}
}

// errNotApproved leaves an issue to the next sweep.
var errNotApproved = errors.New("not approved")

// workIssue makes a run's calls for issue 1, and repeats each step until it succeeds, like sweeps.
func workIssue(ctx context.Context, f Forge, token string) error {
	report := func(body string) func() error {
		return func() error { return f.Report(ctx, "1", tracker.Report{Run: "run-1", Body: body}) }
	}
	for n, step := range []func() error{
		func() error { _, err := f.List(ctx, tracker.Query{Labels: []string{"no-human"}}); return err },
		func() error {
			i, err := f.Get(ctx, "1")
			if err != nil {
				return err
			}
			by, err := f.Approved(ctx, i, "no-human")
			if by != "" && err != nil {
				return fmt.Errorf("%w: %w", errNotApproved, err)
			}
			return err
		},
		report("Working."),
		func() error {
			_, err := f.OpenRequest(ctx, tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix", Body: "Closes #1",
				Labels: []string{"ralph"}, Reviewers: []string{"ada"}, Assignees: []string{"ada"}})
			return err
		},
		func() error {
			return f.Change(ctx, "1", tracker.Change{AddLabels: []string{"in-review"}, RemoveLabels: []string{"no-human"}})
		},
		report("Done."),
		func() error { _, err := f.FollowUps(ctx, tracker.FollowUpQuery{Prefix: "ralph/"}); return err },
	} {
		err := step()
		for try := 1; err != nil; try++ {
			if text := err.Error(); strings.Contains(text, token) || strings.Contains(text, "\n") {
				return fmt.Errorf("step %d: the error shows the token or has two lines: %q", n, text)
			}
			_, known := errors.AsType[*transport.Failure](err)
			if ClassOf(err) == Skip && !known && !errors.Is(err, errNotApproved) {
				return fmt.Errorf("step %d: %w is of no kind that anybody knows", n, err)
			}
			if try == 3 {
				return fmt.Errorf("step %d: %w", n, err)
			}
			err = step()
		}
	}
	return nil
}

// faultAtEveryCall injects every fault into each call of a run, one at a time. Afterwards the issue is in the right state, with
// one report and one request.
func faultAtEveryCall(t *testing.T, h Host) {
	newSite := func(t *testing.T) *Site {
		s := h.New(t)
		s.Issue(Seed{Title: "One", Body: "blocked by #2 and #9", Author: "mallory"})
		s.Issue(Seed{Title: "Two"})
		s.Label("ada", 1, "no-human", true)
		s.Say("mallory", 1, false, "hello")
		s.Request(Request{By: "ada", Head: "x", Title: "Mine", Body: "closes #1"})
		return s
	}
	plain := regexp.MustCompile(h.Plain)
	s := newSite(t)
	f, w := s.openWired(t)
	if err := workIssue(t.Context(), f, s.Token); err != nil {
		t.Fatal(err)
	}
	for n := range w.Calls() {
		t.Run(fmt.Sprint("call ", n), func(t *testing.T) {
			t.Parallel()
			for _, fault := range faults() {
				s := newSite(t)
				f, w := s.openWired(t, func(c *forge.Config) {
					if fault.Hang {
						c.HTTP.Timeout = 100 * time.Millisecond
					}
				})
				w.Inject(func(c forgetest.Call) *forgetest.Fault {
					if c.N != n || plain.MatchString(c.Path) && isAnswer(c.Method, fault.Status) {
						return nil
					}
					return &fault
				})
				what := fmt.Sprintf("%+v", fault)
				if err := workIssue(t.Context(), f, s.Token); err != nil {
					t.Errorf("%s: %v", what, err)
					continue
				}
				if texts := s.Texts(1, false); len(texts) != 1 || !strings.HasSuffix(texts[0], "\nDone.") {
					t.Errorf("%s: reports %q, want one that says done", what, texts)
				}
				equal(t, what+": labels", get(t, Backlog{Tracker: s.Open(t)}, "1").Labels, []string{"in-review"})
				list := s.Requests()
				if len(list) != 2 {
					t.Errorf("%s: requests %+v, want ada's and ralph's", what, list)
					continue
				}
				r := list[1]
				equal(t, what+": labels, reviewers, assignees", [][]string{r.Labels, r.Reviewers, r.Assignees}, [][]string{{"ralph"}, {"ada"}, {"ada"}})
			}
		})
	}
}

// isAnswer reports whether the status is a regular answer to a question about a person, or to setting an unknown person.
func isAnswer(method string, status int) bool {
	return status == http.StatusNotFound || status == http.StatusUnprocessableEntity || method == http.MethodGet && status/100 == 2
}

// hanging: a hanging call ends with its context and returns the cause.
func hanging(t *testing.T, h Host) {
	f, w := h.New(t).openWired(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w.Inject(func(forgetest.Call) *forgetest.Fault {
		cancel(errors.New("stopped"))
		return &forgetest.Fault{Hang: true}
	})
	if _, err := f.List(ctx, tracker.Query{}); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("List = %v, want the cause", err)
	}
}

// tokenNotLogged: neither the log, at any level, nor an error contains the token.
func tokenNotLogged(t *testing.T, h Host) {
	s := h.New(t)
	s.Issue(Seed{Title: "One"})
	var log strings.Builder
	f, w := s.openWired(t, func(c *forge.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.HTTP.Timeout = 100 * time.Millisecond
	})
	all := faults()
	w.Inject(func(c forgetest.Call) *forgetest.Fault { return &all[c.N%len(all)] })
	for range 20 {
		if _, err := f.Get(t.Context(), "1"); err != nil && strings.Contains(err.Error(), s.Token) {
			t.Errorf("the token is in the error %v", err)
		}
	}
	if log.Len() == 0 || strings.Contains(log.String(), s.Token) {
		t.Errorf("log: %s", log.String())
	}
}

// redirectsToLogin: the error for a server that redirects to a login page says so, and is not that of a moved project.
func redirectsToLogin(t *testing.T, h Host) {
	f, w := h.New(t).openWired(t)
	w.Inject(func(forgetest.Call) *forgetest.Fault {
		return &forgetest.Fault{Status: http.StatusFound, Header: http.Header{"Location": {"/users/sign_in"}}}
	})
	_, err := f.List(t.Context(), tracker.Query{})
	if ClassOf(err) != Stop || !strings.Contains(err.Error(), "redirects to an address outside of the API") || transport.IsMoved(err) {
		t.Errorf("List = %v, want a *RefusedError", err)
	}
}
