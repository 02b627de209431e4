package trackertest

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// crowdedSite returns a site where 152 accounts write 250 comments on one issue: ada the first, and heidi, who may also write, the last.
func crowdedSite(t *testing.T, h Host) *Site {
	t.Helper()
	s := h.New(t)
	s.Admit(Person{Name: "heidi", Writes: true})
	n := s.Issue(Seed{Title: "One"})
	s.Say("ada", n, false, "I am ada.")
	for i := range 248 {
		s.Say(fmt.Sprint("eve-", i%150), n, false, "I am somebody.")
	}
	s.Say("heidi", n, false, "I am heidi.")
	return s
}

// trustedAuthors reads the issue and returns the trusted authors of its comments, and the number of all comments.
func trustedAuthors(t *testing.T, f Forge) (names string, all int) {
	t.Helper()
	i, err := f.Get(t.Context(), "1")
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	var list []string
	for _, c := range i.Comments {
		if c.Trusted {
			list = append(list, c.Author)
		}
	}
	return strings.Join(list, " "), len(i.Comments)
}

// crowdListedOnce: the people who may direct ralph are listed once, however many comment; another process makes conditional
// requests.
func crowdListedOnce(t *testing.T, h Host) {
	s := crowdedSite(t, h)
	dir := t.TempDir()
	for _, want := range []int{http.StatusOK, http.StatusNotModified} {
		f, w := s.openWired(t, func(c *forge.Config) { c.StateDir = dir })
		for n, calls := range []int{1 + h.botChecks(2), 0} { // the second read is in the same process
			if names, all := trustedAuthors(t, f); names != "ada heidi" || all != 250 {
				t.Errorf("trusted: %q of %d comments", names, all)
			}
			if asked, first := h.peopleCalls(w.Calls()); asked != calls || n == 0 && first != want {
				t.Errorf("look %d: %d requests about people, want %d with status %d first, not %d", n+1, asked, calls, want, first)
			}
		}
	}
}

// crowdBeyondLimit: if ralph may not read the list, it looks up the last 50 accounts. Earlier ones are not trusted, but their
// comments are listed.
func crowdBeyondLimit(t *testing.T, h Host) {
	s := crowdedSite(t, h)
	s.HidePeople()
	f, w := s.openWired(t)
	if names, all := trustedAuthors(t, f); names != "heidi" || all != 250 {
		t.Errorf("trusted: %q of %d comments, want heidi of 250", names, all)
	}
	if asked, first := h.peopleCalls(w.Calls()); asked != 1+50+h.botChecks(1) || first != http.StatusForbidden {
		t.Errorf("%d requests about people, the first answered %d; want the refused list, and 50", asked, first)
	}
}

// crowdOfReviewers: reviewers cost no more requests than commenters.
func crowdOfReviewers(t *testing.T, h Host) {
	for hidden, most := range map[bool]int{false: 1, true: 1 + 50} {
		t.Run(fmt.Sprint("hidden ", hidden), func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			if hidden {
				s.HidePeople()
			}
			n := s.Request(Request{By: s.Ralph, Head: "ralph/7", Title: "Fix"})
			for i := range 60 {
				s.Review(fmt.Sprint("eve-", i), n, "Delete it.")
			}
			s.Review("ada", n, "Please rename.")
			f, w := s.openWired(t)
			found := mustFollowUps(t, f)
			if len(found) != 1 || !strings.Contains(found[0].Feedback, "Please rename.") || strings.Contains(found[0].Feedback, "Delete it.") {
				t.Errorf("follow-ups %+v, want what ada says alone", found)
			}
			if asked, _ := h.peopleCalls(w.Calls()); asked != most+h.botChecks(1) {
				t.Errorf("%d requests about people, want %d", asked, most+h.botChecks(1))
			}
		})
	}
}

// peopleIncomplete: beyond the page limit ralph looks up people who are not on the list.
func peopleIncomplete(t *testing.T, h Host) {
	s := h.New(t)
	for n := range 1100 {
		s.Admit(Person{Name: fmt.Sprint("maintainer-", n), Writes: true})
	}
	n := s.Issue(Seed{Title: "One"})
	for _, who := range []string{"maintainer-1", "maintainer-1099", "mallory"} {
		s.Say(who, n, false, "Hello.")
	}
	f, w := s.openWired(t)
	names, _ := trustedAuthors(t, f)
	if asked, _ := h.peopleCalls(w.Calls()); names != "maintainer-1 maintainer-1099" || asked != 10+2+h.botChecks(2) {
		t.Errorf("trusted %q after %d requests, want both maintainers after ten pages and two questions", names, asked)
	}
}

// peopleFail: a temporary failure makes nobody untrusted.
func peopleFail(t *testing.T, h Host) {
	s := h.New(t)
	s.Say("ada", s.Issue(Seed{Title: "One"}), false, "Hello.")
	f, w := s.openWired(t)
	w.Inject(forgetest.Fault{Status: http.StatusBadGateway}.At(h.PeopleList))
	if _, err := f.Get(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "list who may write to the project") {
		t.Errorf("Get = %v, want that the list failed", err)
	}
	w.Inject(nil)
	if names, _ := trustedAuthors(t, f); names != "ada" {
		t.Errorf("afterwards trusted: %q, want ada", names)
	}
}

// peopleUnknown: if the list is useless, ralph looks up each account; a malformed list costs three more requests.
func peopleUnknown(t *testing.T, h Host) {
	for name, c := range map[string]struct {
		status int
		body   string
		lists  int
	}{
		"nobody":       {http.StatusOK, `[]`, 1},
		"another form": {http.StatusOK, `{"people":[]}`, 4},
		"odd ids":      {http.StatusOK, `[{"id":"4001"}]`, 4},
		"refused":      {http.StatusForbidden, `{"message":"403 Forbidden"}`, 1},
		"not there":    {http.StatusNotFound, `{"message":"404 Not Found"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			s.Admit(Person{Name: "heidi", ID: 4001, Writes: true})
			s.Admit(Person{Name: "ivan", ID: 4002, Writes: true})
			n := s.Issue(Seed{Title: "One"})
			s.Say("heidi", n, false, "Hello.")
			s.Say("ivan", n, false, "Hello.")
			f, w := s.openWired(t)
			w.Inject(forgetest.Fault{Status: c.status, Body: c.body}.At(h.PeopleList))
			names, _ := trustedAuthors(t, f)
			if asked, _ := h.peopleCalls(w.Calls()); names != "heidi ivan" || asked != c.lists+2+h.botChecks(2) {
				t.Errorf("trusted %q after %d requests, want both after %d", names, asked, c.lists+2+h.botChecks(2))
			}
		})
	}
}

// comments: the permission in the API decides about trust, not a name; a bot must be listed. All comments are returned, in order.
func comments(t *testing.T, h Host) {
	s := h.New(t)
	s.Admit(Person{Name: "grace"})
	s.Admit(Person{Name: "heidi", Writes: true})
	s.Admit(Person{Name: "admin[bot]", ID: 4001, Bot: true, Writes: true})
	s.Admit(Person{Name: "listed[bot]", ID: 4002, Bot: true})
	n := s.Issue(Seed{Title: "One"})
	who := []string{"ada", "grace", "heidi", "mallory", "admin[bot]", "listed[bot]", "heidi"}
	for i := range 230 { // several pages
		s.Say(who[i%len(who)], n, false, "by "+who[i%len(who)])
	}
	f, w := s.openWired(t, func(c *forge.Config) { c.TrustedBots = []int64{4002} })
	if err := f.Report(t.Context(), key(n), tracker.Report{Run: "run", Body: "Working."}); err != nil {
		t.Fatal(err)
	}
	w.Calls()
	i, err := f.Get(t.Context(), key(n))
	if err != nil || len(i.Comments) != 230 {
		t.Fatalf("%d comments, %v, want 230", len(i.Comments), err)
	}
	may := regexp.MustCompile(`^(ada|heidi|listed\[bot\])$`)
	for at, c := range i.Comments {
		by := who[at%len(who)]
		want := tracker.Comment{Author: by, Created: c.Created, Trusted: may.MatchString(by), Body: "by " + by}
		if !want.Trusted && c.Body == "" {
			want.Body = ""
		}
		equal(t, fmt.Sprint("comment ", at), c, want)
		if at > 0 && c.Created.Before(i.Comments[at-1].Created) {
			t.Errorf("comment %d is out of order", at)
		}
	}
	if asked, _ := h.peopleCalls(w.Calls()); asked != 1+h.botChecks(3) { // admin[bot] is one of the 3
		t.Errorf("%d requests about people, want %d", asked, 1+h.botChecks(3))
	}
}
