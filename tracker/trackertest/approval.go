package trackertest

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// approved: an issue is worked if its label was set with write permission, and nobody without it has edited the text since.
func approved(t *testing.T, h Host) {
	type step = func(*Site)
	label := func(who string) step { return func(s *Site) { s.Label(who, 1, "No-Human", true) } }
	unlabel := func(s *Site) { s.Label("ada", 1, "No-Human", false) }
	edit := func(who string) step { return func(s *Site) { s.Edit(who, 1, "", "New text.") } }
	rename := func(who string) step { return func(s *Site) { s.Edit(who, 1, "New", "") } }
	for name, c := range map[string]struct {
		steps []step
		by    string
		want  string // part of the reason; empty: approved
	}{
		"by somebody who may write":      {[]step{label("ada")}, "ada", ""},
		"by another":                     {[]step{label("heidi")}, "heidi", ""},
		"by a reader":                    {[]step{label("grace")}, "grace", "grace, who has no write permission"},
		"by a stranger":                  {[]step{label("eve")}, "eve", "who has no write permission"},
		"by a bot":                       {[]step{label("helper[bot]")}, "helper[bot]", "(id 4001), who is a bot"},
		"by a listed bot":                {[]step{label("friend[bot]")}, "friend[bot]", ""},
		"a person named like a bot":      {[]step{label("fake-bot")}, "fake-bot", "who has no write permission"},
		"by one who left":                {[]step{label("heidi"), func(s *Site) { s.Admit(Person{Name: "heidi"}) }}, "heidi", "who has no write permission"},
		"never labelled":                 {nil, "", "it is not known who set"},
		"label was removed":              {[]step{label("ada"), unlabel}, "", "it is not known who set"},
		"labelled again":                 {[]step{label("mallory"), unlabel, label("ada")}, "ada", ""},
		"last labelled by another":       {[]step{label("ada"), unlabel, label("grace")}, "grace", "by grace"},
		"edited before":                  {[]step{edit("mallory"), label("ada")}, "ada", ""},
		"edited after":                   {[]step{label("ada"), edit("mallory")}, "ada", "mallory, who has no write permission, edited the text"},
		"edited after by a reader":       {[]step{label("ada"), edit("grace")}, "ada", "grace, who has no write permission, edited"},
		"edited after by a trusted one":  {[]step{label("ada"), edit("heidi")}, "ada", ""},
		"edited after by both":           {[]step{label("ada"), edit("mallory"), edit("heidi")}, "ada", "mallory, who has no write"},
		"edited, then labelled again":    {[]step{label("ada"), edit("mallory"), unlabel, label("ada")}, "ada", ""},
		"renamed after":                  {[]step{label("ada"), rename("mallory")}, "ada", "edited"},
		"renamed after by a trusted one": {[]step{label("ada"), rename("ada")}, "ada", ""},
		"renamed before":                 {[]step{rename("mallory"), label("ada")}, "ada", ""},
		"commented after":                {[]step{label("ada"), func(s *Site) { s.Say("mallory", 1, false, "changed the description") }}, "ada", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			s.Admit(Person{Name: "grace"})
			s.Admit(Person{Name: "heidi", Writes: true})
			s.Admit(Person{Name: "helper[bot]", ID: 4001, Bot: true, Writes: true})
			s.Admit(Person{Name: "friend[bot]", ID: 4002, Bot: true, Writes: true})
			s.Issue(Seed{Title: "One", Body: "Text.", Author: "mallory"})
			for _, step := range c.steps {
				step(s)
			}
			f := s.Open(t, func(c *forge.Config) { c.TrustedBots = []int64{4002} })
			by, reason := f.Approved(t.Context(), get(t, Backlog{Tracker: f}, "1"), "no-human")
			if c.want == "" && reason != nil || c.want != "" && (reason == nil || !strings.Contains(reason.Error(), c.want)) {
				t.Errorf("reason is %v, want %q", reason, c.want)
			}
			if by != c.by {
				t.Errorf("by %q, want %q", by, c.by)
			}
		})
	}
}

// textBeforeLabel: somebody changes the text while ralph reads the issue, and then a person sets the label again.
func textBeforeLabel(t *testing.T, h Host) {
	for name, edit := range map[string]func(*Site){
		"body":  func(s *Site) { s.Edit("mallory", 1, "", "Good.") },
		"title": func(s *Site) { s.Edit("mallory", 1, "Good", "") },
		"":      func(*Site) {},
	} {
		s := h.New(t)
		s.Issue(Seed{Title: "Evil", Body: "Evil.", Author: "mallory"})
		s.Label("ada", 1, "no-human", true)
		f := s.Open(t)
		i := get(t, Backlog{Tracker: f}, "1")
		edit(s)
		s.Label("ada", 1, "no-human", false)
		s.Label("ada", 1, "no-human", true)
		_, reason := f.Approved(t.Context(), i, "no-human")
		if changed := reason != nil && strings.Contains(reason.Error(), "changed while it was read"); changed != (name != "") {
			t.Errorf("%q changed: %v", name, reason)
		}
	}
}

// taken: an open request of an account with write permission takes the issues that it closes, unless it is ralph's own.
func taken(t *testing.T, h Host) {
	s := h.New(t)
	for range 5 {
		s.Issue(Seed{Title: "One"})
	}
	one := s.Request(Request{By: "ada", Head: "ada/1", Title: "Fix", Body: "Fixes #1"})
	s.Request(Request{By: "mallory", Head: "x", Title: "Mine", Body: "Closes #2"})
	s.Request(Request{By: s.Ralph, Head: "ralph/3", Title: "Ralph's", Body: "Closes #3"})
	s.Request(Request{By: "ada", Head: "y", Title: "Old", Body: "Closes #4", State: "closed"})
	s.Request(Request{By: "ada", Head: "z", Title: "Mentions", Body: "See #5"})
	s.checkTaken(t, s.Open(t), 5, map[string]string{"1": key(one) + " by ada closes it"})
}

// checkTaken compares the Taken of each issue, in List and in Get.
func (s *Site) checkTaken(t *testing.T, f Forge, all int, want map[string]string) {
	t.Helper()
	issues := list(t, Backlog{Tracker: f})
	if len(issues) != all {
		t.Errorf("listed %d issues, want %d", len(issues), all)
	}
	for _, i := range issues {
		for _, by := range []string{i.Taken, get(t, Backlog{Tracker: f}, i.Key).Taken} {
			if (by == "") != (want[i.Key] == "") || !strings.HasSuffix(by, want[i.Key]) {
				t.Errorf("%s is taken by %q, want %q", i.Key, by, want[i.Key])
			}
		}
	}
}

// takenByOutsider: anybody's request may claim to close every issue. It takes only issues that its author is assigned to, also if
// ralph cannot list people.
func takenByOutsider(t *testing.T, h Host) {
	for _, hidden := range []bool{false, true} {
		t.Run(fmt.Sprint("hidden ", hidden), func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			if hidden {
				s.HidePeople()
			}
			s.Admit(Person{Name: "grace"})
			s.Admit(Person{Name: "friend[bot]", ID: 4002, Bot: true})
			for _, who := range [][]string{nil, nil, {"ada", "mallory"}, {"ada"}, nil, nil} {
				s.Issue(Seed{Title: "One", Assignees: who})
			}
			mine := s.Request(Request{By: "mallory", Head: "x", Title: "Mine", Body: "Closes #1, closes #2, closes #3, closes #4"})
			fix := s.Request(Request{By: "ada", Head: "y", Title: "Fix", Body: "Closes #2"})
			s.Request(Request{By: "grace", Head: "z", Title: "A reader's", Body: "Closes #5"})
			s.Request(Request{By: "friend[bot]", Head: "b", Title: "A bot's", Body: "Closes #6"})
			f, w := s.openWired(t, func(c *forge.Config) { c.TrustedBots = []int64{4002} })
			list(t, Backlog{Tracker: f})
			most := 1 + h.botChecks(1)
			if hidden { // one request for each of the three authors
				most += 3
			}
			if asked, _ := h.peopleCalls(w.Calls()); asked != most {
				t.Errorf("%d requests about people, want %d", asked, most)
			}
			s.checkTaken(t, f, 6, map[string]string{"2": key(fix) + " by ada closes it", "3": key(mine) + " by mallory closes it"})
		})
	}
}

// filters: assignee, milestone and authors filter the list, ignoring case; requests and closed issues are not in it.
func filters(t *testing.T, h Host) {
	for name, c := range map[string]struct {
		edit func(*forge.Config)
		want []string
	}{
		"none":      {func(*forge.Config) {}, []string{"1", "2", "3", "4"}},
		"assignee":  {func(c *forge.Config) { c.Assignee = "Ada" }, []string{"1", "2", "4"}},
		"milestone": {func(c *forge.Config) { c.Milestone = "V1" }, []string{"1", "2", "3"}},
		"author":    {func(c *forge.Config) { c.Authors = []string{"Heidi", "nobody"} }, []string{"1", "3", "4"}},
		"all":       {func(c *forge.Config) { c.Authors, c.Assignee, c.Milestone = []string{"heidi"}, "ada", "v1" }, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := h.New(t)
			s.Admit(Person{Name: "heidi", Writes: true})
			labels, ada := []string{"no-human"}, []string{"ada"}
			s.Issue(Seed{Title: "fits", Author: "heidi", Assignees: ada, Milestone: "v1", Labels: labels})
			s.Issue(Seed{Title: "another author", Author: "mallory", Assignees: []string{"heidi", "ada"}, Milestone: "v1", Labels: labels})
			s.Issue(Seed{Title: "not assigned", Author: "heidi", Milestone: "v1", Labels: labels})
			s.Issue(Seed{Title: "another milestone", Author: "heidi", Assignees: ada, Milestone: "v2", Labels: labels})
			s.Issue(Seed{Title: "no label", Author: "heidi", Assignees: ada, Milestone: "v1"})
			s.Issue(Seed{Title: "closed", Author: "heidi", Assignees: ada, Milestone: "v1", Labels: labels, Closed: true})
			s.Request(Request{By: "heidi", Head: "topic", Title: "a request"})
			equal(t, "keys", matching(t, Backlog{Tracker: s.Open(t, c.edit)}, "no-human"), c.want)
		})
	}
}

// unchanged: the next sweep over an unchanged backlog makes only conditional requests, a few per page.
func unchanged(t *testing.T, h Host) {
	s := h.New(t)
	const issues = 300
	for n := range issues {
		s.Issue(Seed{Title: fmt.Sprint("Issue ", n), Labels: []string{"no-human"}})
	}
	dir := t.TempDir()
	sweep := func() (keys []string, calls []forgetest.Call) { // with cron each sweep is a process
		f, w := s.openWired(t, func(c *forge.Config) { c.StateDir = dir })
		keys = matching(t, Backlog{Tracker: f}, "no-human")
		return keys, w.Calls()
	}
	first, _ := sweep()
	again, calls := sweep()
	if len(first) != issues {
		t.Errorf("listed %d", len(first))
	}
	equal(t, "the second list", again, first)
	if most := issues/100 + 2; len(calls) > most { // one to see that there is no further page, and one for requests or the spelling of labels
		t.Errorf("%d requests, want at most %d", len(calls), most)
	}
	countUncached := func(calls []forgetest.Call) (n int) {
		for _, c := range calls {
			if c.Status != 304 {
				n++
			}
		}
		return n
	}
	if n := countUncached(calls); n > 0 {
		t.Errorf("%d of %+v were answered in full", n, calls)
	}
	s.Edit("ada", 150, "Changed", "")
	if _, calls = sweep(); countUncached(calls) != 1 {
		t.Errorf("%d pages read anew after one issue changed", countUncached(calls))
	}
}

func reportOn(t *testing.T, f Forge, number int, run, body string) {
	t.Helper()
	report(t, Backlog{Tracker: f}, key(number), tracker.Report{Run: run, Body: body})
}

// reportForged: a copy of ralph's marker, by a stranger or by the agent through ralph's own account, makes no comment a report.
func reportForged(t *testing.T, h Host) {
	s := h.New(t)
	s.Issue(Seed{Title: "One"})
	s.Issue(Seed{Title: "Two"})
	f := s.Open(t)
	reportOn(t, f, 1, "run-1", "Genuine.")
	genuine := s.Texts(1, false)[0]
	s.Say("mallory", 1, false, genuine)
	s.Say("mallory", 2, false, genuine)
	forged := []string{genuine, "Quoted:\n" + genuine, strings.Replace(genuine, "mac=", "mac=0", 1)} // the mark is valid only for issue 1
	for _, text := range forged {
		s.Say(s.Ralph, 2, false, text)
	}
	reportOn(t, f, 1, "run-1", "Done.")
	reportOn(t, f, 2, "run-1", "Ralph's.")
	if texts := s.Texts(1, false); len(texts) != 1 || !strings.HasSuffix(texts[0], "\nDone.") {
		t.Errorf("texts %q, want the report", texts)
	}
	texts := s.Texts(2, false)
	if len(texts) != 4 || !strings.HasSuffix(texts[3], "\nRalph's.") {
		t.Fatalf("texts %q, want the forged ones and a new one", texts)
	}
	equal(t, "forged texts", texts[:3], forged)
	// A report by ralph's own account counts as a report, also one of another installation.
	i := get(t, Backlog{Tracker: f}, "2")
	if len(i.Comments) != 3 || i.Comments[0].Author != "mallory" {
		t.Errorf("comments %+v, want mallory's and two of ralph's that are no reports", i.Comments)
	}
	for _, c := range i.Comments {
		if c.Trusted && c.Author != s.Ralph {
			t.Errorf("the comment of %s is trusted", c.Author)
		}
	}
	if c := get(t, Backlog{Tracker: f}, "1").Comments; len(c) != 1 || c[0].Author != "mallory" || c[0].Trusted {
		t.Errorf("comments %+v, want mallory's", c)
	}
}

// reportTwice: two reports of one run, left by a lost answer, are merged.
func reportTwice(t *testing.T, h Host) {
	s := h.New(t)
	n := s.Issue(Seed{Title: "One"})
	f := s.Open(t)
	reportOn(t, f, n, "run", "Working.")
	s.Say(s.Ralph, n, false, s.Texts(n, false)[0])
	reportOn(t, f, n, "run", "Done.")
	if texts := s.Texts(n, false); len(texts) != 1 || !strings.HasSuffix(texts[0], "\nDone.") {
		t.Errorf("texts %q, want one report", texts)
	}
}

// reportRuns: no run name breaks the marker.
func reportRuns(t *testing.T, h Host) {
	s := h.New(t)
	n := s.Issue(Seed{Title: "One"})
	f := s.Open(t)
	for _, run := range []string{"a", "a b", "--> <b>", "é\n", "x mac=1"} {
		reportOn(t, f, n, run, "one")
		reportOn(t, f, n, run, "two")
		texts := s.Texts(n, false)
		if len(texts) != 1 {
			t.Fatalf("run %q: %d reports", run, len(texts))
		}
		if text := texts[0]; !strings.HasPrefix(text, "<!-- ralph:report run=") || !strings.HasSuffix(text, " -->\ntwo") || strings.Count(text, "-->") != 1 {
			t.Errorf("run %q: report %q", run, text)
		}
	}
}

// reportTooLong: a report is cut to the forge's limit, says so, and leaves no fence open.
func reportTooLong(t *testing.T, h Host) {
	s := h.New(t)
	n := s.Issue(Seed{Title: "One"})
	f := s.Open(t)
	for run, body := range map[string]string{
		"runes":  strings.Repeat("漢", forge.MaxText),
		"fenced": "# Report\n\n````text\n" + strings.Repeat("☕ line\n", forge.MaxText) + "````\nafter",
		"exact":  strings.Repeat("x", forge.MaxText),
	} {
		reportOn(t, f, n, run, body)
		reportOn(t, f, n, run, body)
		texts := s.Texts(n, false)
		if len(texts) != 1 {
			t.Fatalf("%d reports, want one", len(texts))
		}
		text := texts[0]
		if len(text) > forge.MaxText || !utf8.ValidString(text) || !strings.Contains(text, "… (cut") || !strings.HasSuffix(text, "ralph's log)") {
			t.Errorf("report of %d bytes, valid %v, ends %q", len(text), utf8.ValidString(text), text[len(text)-200:])
		}
		if strings.Contains(text, "\n````text") && !strings.Contains(text, "\n````\n\n… (cut") {
			t.Errorf("fence is left open: …%q", text[len(text)-250:])
		}
	}
}
