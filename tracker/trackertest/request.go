package trackertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// mustOpenRequest opens a request for the branch ralph/1.
func mustOpenRequest(t *testing.T, f Forge, r tracker.Request) tracker.RequestRef {
	t.Helper()
	r.Key, r.Head = "1", "ralph/1"
	ref, err := f.OpenRequest(t.Context(), r)
	if err != nil {
		t.Fatalf("OpenRequest: %v", err)
	}
	return ref
}

// requestByNumber returns a request by its number.
func (s *Site) requestByNumber(t *testing.T, n int) Request {
	t.Helper()
	list := s.Requests()
	at := slices.IndexFunc(list, func(r Request) bool { return r.Number == n })
	if at < 0 {
		t.Fatalf("there is no request %d: %+v", n, list)
	}
	return list[at]
}

// openRequest: a request is opened once, is updated by ralph, keeps people's changes, and is not written without a change.
func openRequest(t *testing.T, h Host) {
	s := h.New(t)
	f, w := s.openWired(t)
	r := tracker.Request{Base: "main", Title: "Fix", Body: "First.", Draft: true, Labels: []string{"ralph"},
		Reviewers: []string{"ada", "nobody-at-all"}, Assignees: []string{"ada", "gone"}}
	first := mustOpenRequest(t, f, r)
	if !first.Draft || !strings.HasSuffix(first.URL, "/"+key(first.Number)) {
		t.Errorf("opened %+v", first)
	}
	was := s.requestByNumber(t, first.Number)
	want := Request{
		Number: first.Number, By: s.Ralph, Head: "ralph/1", Base: "main", Title: was.Title, Body: "First.", Commit: was.Commit, State: "open",
		Draft: true, Labels: []string{"ralph"}, Reviewers: []string{"ada"}, Assignees: []string{"ada"},
	}
	equal(t, "request", was, want)
	r.Reviewers, r.Assignees, r.Labels = []string{"ada"}, []string{"ada"}, []string{"Ralph"}
	w.Calls()
	equal(t, "opened again", mustOpenRequest(t, f, r), first)
	for _, c := range w.Calls() {
		if c.Method != http.MethodGet && !strings.HasSuffix(c.Path, "/graphql") {
			t.Errorf("nothing has changed, yet: %s %s", c.Method, c.Path)
		}
	}
	r.Draft, r.Title, r.Body = false, "Fix it", "Second."
	if ref := mustOpenRequest(t, f, r); ref.Number != first.Number || ref.Draft {
		t.Errorf("updated: %+v", ref)
	}
	want.Title, want.Body, want.Draft = "Fix it", "Second.", false
	equal(t, "updated request", s.requestByNumber(t, first.Number), want)
	s.Amend(first.Number, func(r *Request) { r.State = "closed" })
	if ref := mustOpenRequest(t, f, r); ref.Number == first.Number || len(s.Requests()) != 2 {
		t.Errorf("after a person closed it: %+v, want a new one", ref)
	}
}

// requestAmongOthers: among several open requests of the branch, one into the base takes precedence, ralph's own before
// another's, and ralph does not change a person's. Requests of accounts that may not direct ralph never count.
func requestAmongOthers(t *testing.T, h Host) {
	type one struct{ by, base string }
	const ralph = ""
	for _, c := range []struct {
		existing []one
		want     int // index of the request; len(there): a new one; -1: the last one is in the way
	}{
		{[]one{{"ada", "main"}}, 0},
		{[]one{{"ada", "release"}}, 1},
		{[]one{{"ada", "release"}, {ralph, "release"}}, 1},
		{[]one{{"ada", "main"}, {ralph, "release"}}, 0},
		{[]one{{ralph, "release"}, {ralph, "main"}}, 1},
		{[]one{{ralph, "main"}, {"ada", "main"}}, 0},
		{[]one{{"mallory", "main"}}, -1},
		{[]one{{"grace", "main"}}, -1},
		{[]one{{"mallory", "release"}}, 1},
		{[]one{{ralph, "release"}, {"mallory", "main"}}, -1},
		{[]one{{ralph, "main"}, {"mallory", "main"}}, 0},
	} {
		s := h.New(t)
		s.Admit(Person{Name: "grace"})
		var numbers []int
		for _, p := range c.existing {
			numbers = append(numbers, s.Request(Request{By: cmp.Or(p.by, s.Ralph), Head: "ralph/1", Base: p.base, Title: "t", Body: "Text."}))
		}
		request := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Body: "y"}
		ref, err := s.Open(t).OpenRequest(t.Context(), request)
		list := s.Requests()
		if last := len(numbers) - 1; c.want < 0 {
			says := fmt.Sprintf("%d by %s", numbers[last], c.existing[last].by)
			if !errors.Is(err, tracker.ErrOccupied) || !strings.Contains(err.Error(), says) || len(list) != len(numbers) {
				t.Errorf("beside %+v: opened %+v, %v, want an error that names the last", c.existing, ref, err)
			}
			continue
		}
		if err != nil || len(list) <= c.want || ref.Number != list[c.want].Number || len(list) > max(len(numbers), c.want+1) {
			t.Errorf("beside %+v: opened %+v, %v, want the one at %d of %+v", c.existing, ref, err, c.want, list)
			continue
		}
		r := list[c.want]
		if ours := r.By == s.Ralph; r.Base != "main" || (r.Title == "x") != ours || (r.Body == "y") != ours {
			t.Errorf("beside %+v: %+v", c.existing, r)
		}
	}
}

// requestUncertain loses the answer, or opens another request first: one call suffices, and there is one request.
func requestUncertain(t *testing.T, h Host) {
	route := h.Routes["open a request"]
	for name, c := range map[string]struct {
		fault *forgetest.Fault // injected into each call; nil: another request is opened first
		by    string           // its author; empty: ralph
		err   error
	}{
		"lost":         {fault: &forgetest.Fault{Reset: true, Effect: true}},
		"empty":        {fault: &forgetest.Fault{Status: http.StatusOK, Body: "{}", Effect: true}},
		"null":         {fault: &forgetest.Fault{Status: http.StatusOK, Body: "null", Effect: true}},
		"a person":     {by: "ada"},
		"a stranger":   {by: "mallory", err: tracker.ErrOccupied},
		"ralph itself": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			f, w := s.openWired(t)
			by := cmp.Or(c.by, s.Ralph)
			w.Inject(func(call forgetest.Call) *forgetest.Fault {
				if !route.matches(call) {
					return nil
				}
				if c.fault == nil && len(s.Requests()) == 0 {
					s.Request(Request{By: by, Head: "ralph/1", Title: "First", Body: "Text."})
				}
				return c.fault
			})
			ref, err := f.OpenRequest(t.Context(), tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Body: "y"})
			list := s.Requests()
			if !errors.Is(err, c.err) || len(list) != 1 || c.err == nil && ref.Number != list[0].Number {
				t.Fatalf("opened %+v, %v; there are %+v", ref, err, list)
			}
			if r := list[0]; c.err == nil && ((r.Title == "x") != (by == s.Ralph) || (r.Body == "y") != (by == s.Ralph)) {
				t.Errorf("request %+v", r)
			}
		})
	}
}

// requestRefused: the latest request of the branch counts, and only if it is closed without a merge. Requests of accounts without
// write permission do not count, nor do a person's into another base.
func requestRefused(t *testing.T, h Host) {
	s := h.New(t)
	s.Admit(Person{Name: "grace"})
	f := s.Open(t)
	for _, c := range []struct{ by, head, base, state, commit, want string }{
		{"mallory", "ralph/1", "main", "closed", "7", ""},
		{s.Ralph, "ralph/1", "main", "closed", "1", "1"},
		{s.Ralph, "ralph/12", "main", "closed", "2", "1"},
		{"mallory", "ralph/1", "main", "open", "7", "1"},
		{"ada", "ralph/1", "old", "closed", "8", "1"},
		{s.Ralph, "ralph/1", "main", "open", "3", ""},
		{"grace", "ralph/1", "main", "closed", "7", ""},
		{s.Ralph, "ralph/1", "old", "closed", "4", "4"},
		{"ada", "ralph/1", "main", "closed", "8", "8"},
		{s.Ralph, "ralph/1", "main", "closed", "5", "5"},
		{s.Ralph, "ralph/1", "main", "merged", "6", ""},
	} {
		s.Request(Request{By: c.by, Head: c.head, Base: c.base, State: c.state, Title: "Fix", Commit: strings.Repeat(c.commit, 40)})
		commit, url, err := f.RejectedHead(t.Context(), "ralph/1", "main")
		if err != nil || commit != strings.Repeat(c.want, 40) || (url == "") != (c.want == "") {
			t.Errorf("after %+v: refused %q at %q, %v", c, commit, url, err)
		}
	}
}

// requestsOwn: only ralph's own open requests count.
func requestsOwn(t *testing.T, h Host) {
	s := h.New(t)
	n := s.Request(Request{By: s.Ralph, Head: "ralph/7", Title: "Fix"})
	s.Request(Request{By: s.Ralph, Head: "ralph/8", Title: "Draft: fix", Draft: true})
	s.Request(Request{By: "ada", Head: "ralph/9", Title: "A person's"})
	s.Request(Request{By: s.Ralph, Head: "topic", Title: "Another branch"})
	s.Request(Request{By: s.Ralph, Head: "ralph/10", Title: "Closed", State: "closed"})
	open, err := s.Open(t).Requests(t.Context(), "ralph/")
	if err != nil || len(open) != 2 || open["7"].Number != n || open["7"].URL == "" || open["7"].Draft || !open["8"].Draft {
		t.Errorf("%+v, %v", open, err)
	}
}

func mustFollowUps(t *testing.T, f Forge) []tracker.FollowUp {
	t.Helper()
	list, err := f.FollowUps(t.Context(), tracker.FollowUpQuery{Prefix: "ralph/"})
	if err != nil {
		t.Fatalf("FollowUps: %v", err)
	}
	return list
}

// followUps: ralph's own open requests need another run because of a conflict, a request by an account with write permission, or
// failed checks, in this order; the feedback has all. Comments that ralph has answered do not count, whoever has pushed since.
func followUps(t *testing.T, h Host) {
	conflict := func(s *Site, n int) { s.Amend(n, func(r *Request) { r.Conflicts = true }) }
	fail := func(s *Site, n int) { s.Amend(n, func(r *Request) { r.Failed = "unit" }) }
	push := func(s *Site, n int) { s.Amend(n, func(r *Request) { r.Commit = strings.Repeat("b", 40) }) }
	asks := func(by string) func(*Site, int) { return func(s *Site, n int) { s.Review(by, n, "Please rename.") } }
	type steps = []func(*Site, int)
	for name, c := range map[string]struct {
		steps steps
		since time.Duration // before now, ralph's last answer; 0: unknown
		want  tracker.FollowUpReason
		says  []string
	}{
		"nothing":              {},
		"conflict":             {steps: steps{conflict}, want: tracker.Conflict, says: []string{"conflicts with main"}},
		"failed":               {steps: steps{fail}, want: tracker.ChecksFailed, says: []string{"unit"}},
		"failed, pushed since": {steps: steps{fail, push}},
		"asked":                {steps: steps{asks("ada"), asks("mallory")}, want: tracker.ChangesRequested, says: []string{"ada", "Please rename."}},
		"asked by a stranger":  {steps: steps{asks("mallory")}},
		"asked by a reader":    {steps: steps{asks("grace")}},
		"asked, pushed since":  {steps: steps{asks("ada"), push}},
		"asked, others pushed": {steps: steps{asks("ada"), push}, since: 100 * time.Hour, want: tracker.ChangesRequested, says: []string{"Please rename."}},
		"asked, then answered": {steps: steps{asks("ada"), push}, since: -100 * time.Hour},
		"pushed, then asked":   {steps: steps{push, asks("ada")}, want: tracker.ChangesRequested},
		"all": {steps: steps{conflict, asks("ada"), fail}, want: tracker.Conflict,
			says: []string{"conflicts with main", "Please rename.", "unit"}},
		"asked, and checks":     {steps: steps{fail, asks("ada")}, want: tracker.ChangesRequested, says: []string{"Please rename.", "unit"}},
		"closed with conflicts": {steps: steps{conflict, func(s *Site, n int) { s.Amend(n, func(r *Request) { r.State = "closed" }) }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			s.Admit(Person{Name: "grace"})
			n := s.Request(Request{By: s.Ralph, Head: "ralph/7", Title: "Fix"})
			conflict(s, s.Request(Request{By: "ada", Head: "ralph/8", Title: "A person's"}))
			conflict(s, s.Request(Request{By: s.Ralph, Head: "topic", Title: "Another branch"}))
			q := tracker.FollowUpQuery{Prefix: "ralph/"}
			for _, step := range c.steps {
				step(s, n)
			}
			f := s.Open(t)
			if c.since != 0 {
				now := get(t, Backlog{Tracker: f}, key(s.Issue(Seed{Title: "Now"}))).Created // by the forge's clock
				q.Answered = func(_ context.Context, key string) (time.Time, error) {
					if key != "7" {
						t.Errorf("asked about %q", key)
					}
					return now.Add(-c.since), nil
				}
			}
			got, err := f.FollowUps(t.Context(), q)
			if err != nil || (len(got) == 1) != (c.want != "") || len(got) > 1 {
				t.Fatalf("%+v, %v, want %q", got, err, c.want)
			}
			if c.want == "" {
				return
			}
			is := got[0]
			same := is.Key == "7" && is.Head == "ralph/7" && is.Request.Number == n && is.Commit == s.requestByNumber(t, n).Commit
			if !same || is.Reason != c.want || is.At.IsZero() {
				t.Errorf("follow-up %+v", is)
			}
			for _, part := range c.says {
				if !strings.Contains(is.Feedback, part) {
					t.Errorf("feedback lacks %q:\n%s", part, is.Feedback)
				}
			}
			if len(is.Feedback) > forge.MaxFeedback || strings.Contains(is.Feedback, "mallory") {
				t.Errorf("feedback of %d bytes:\n%.500s", len(is.Feedback), is.Feedback)
			}
		})
	}
}

// followUpsSideBySide lists the follow-ups of many requests twice concurrently. Each call checks AtOnce requests in parallel, and
// both return the same, in the order of the requests.
func followUpsSideBySide(t *testing.T, h Host) {
	s := h.New(t)
	f := s.Open(t)
	var want []string
	for n := range h.AtOnce + 4 {
		head := fmt.Sprint("ralph/", 100+n)
		request := s.Request(Request{By: s.Ralph, Head: head, Title: "Fix"})
		if n%2 == 0 {
			s.Review("ada", request, "Rename "+head+".")
			want = append(want, head)
		} else {
			s.Review("mallory", request, "Delete "+head+".")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var mu sync.Mutex
			arrived, all := 0, make(chan struct{})
			q := tracker.FollowUpQuery{Prefix: "ralph/", Answered: func(ctx context.Context, _ string) (time.Time, error) {
				mu.Lock()
				if arrived++; arrived == h.AtOnce {
					close(all)
				}
				mu.Unlock()
				select {
				case <-all:
					return time.Time{}, nil
				case <-ctx.Done():
					return time.Time{}, fmt.Errorf("waited for others: %w", ctx.Err())
				}
			}}
			list, err := f.FollowUps(ctx, q)
			if err != nil {
				t.Errorf("FollowUps: %v; want %d looked at side by side", err, h.AtOnce)
			}
			var heads []string
			for _, is := range list {
				heads = append(heads, is.Head)
				if !strings.Contains(is.Feedback, "Rename "+is.Head+".") || strings.Count(is.Feedback, "Rename ") != 1 || is.Commit == "" {
					t.Errorf("%s has the feedback %q", is.Head, is.Feedback)
				}
			}
			equal(t, "branches", heads, want)
		})
	}
	wg.Wait()
}
