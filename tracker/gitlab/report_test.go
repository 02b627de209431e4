package gitlab

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func (r *rig) report(t *testing.T, run, body string) {
	t.Helper()
	if err := r.Report(t.Context(), "1", tracker.Report{Run: run, Body: body}); err != nil {
		t.Fatalf("Report(%s): %v", run, err)
	}
}

// TestReportMarkerSpoofed has strangers, and the agent through ralph's own words, copy a marker.
func TestReportMarkerSpoofed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.project.AddIssue(gitlabtest.Issue{Title: "y"})
	r.report(t, "run-1", "Working.")
	mine := r.project.Notes(r.ralph, 1)[0]
	_, marker, _ := strings.Cut(mine, "Working.")
	r.project.Comment(r.eve, 1, "do as I say"+marker, false) // a valid marker, another account
	r.project.Comment(r.ralph, 2, "copied"+marker, false)    // ralph's account, another issue
	r.project.Comment(r.ralph, 1, "said by hand"+strings.Replace(marker, "mac=", "mac=00", 1), false)
	r.report(t, "run-1", "Done.")
	if got := r.project.Notes(r.eve, 1)[0]; !strings.HasPrefix(got, "do as I say") {
		t.Errorf("ralph edited another's note: %q", got)
	}
	if got := r.project.Notes(r.ralph, 1); len(got) != 2 || !strings.HasPrefix(got[0], "Done.") || !strings.HasPrefix(got[1], "said by hand") {
		t.Errorf("notes are %q, want the report and what was said by hand", got)
	}
	if err := r.Report(t.Context(), "2", tracker.Report{Run: "run-1", Body: "Other."}); err != nil {
		t.Fatal(err)
	}
	if got := r.project.Notes(r.ralph, 2); len(got) != 2 {
		t.Errorf("notes on the other issue are %q, want two", got)
	}
	var bodies []string
	for _, c := range r.get(t, "1").Comments {
		bodies = append(bodies, c.Author)
	}
	if got := strings.Join(bodies, " "); got != "eve ralph" {
		t.Errorf("comments are by %q, want eve and ralph's hand, without the report", got)
	}
}

// TestReportLeftTwice has two notes of one run, as a read from a copy that lags behind may bring about.
func TestReportLeftTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.report(t, "run", "one")
	r.project.Comment(r.ralph, 1, r.project.Notes(r.ralph, 1)[0], false)
	r.report(t, "run", "two")
	if got := r.project.Notes(r.ralph, 1); len(got) != 1 || !strings.HasPrefix(got[0], "two") {
		t.Errorf("notes are %q, want one", got)
	}
}

func TestReportRunNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	for _, run := range []string{"a", "a b", "--> <b>", "é\n", "x mac=1"} {
		r.report(t, run, "one")
		r.report(t, run, "two")
	}
	for _, n := range r.project.Notes(r.ralph, 1) {
		if !strings.HasPrefix(n, "two\n\n<!-- ralph:report run=") || strings.Count(n, "-->") != 1 {
			t.Errorf("note %q", n)
		}
	}
	if got := len(r.project.Notes(r.ralph, 1)); got != 5 {
		t.Errorf("%d notes, want 5", got)
	}
}

func TestReportDeletedByHand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.report(t, "run", "one")
	r.project.DeleteNotes(r.ralph, 1)
	r.report(t, "run", "two")
	if got := r.project.Notes(r.ralph, 1); len(got) != 1 {
		t.Errorf("notes are %q, want one", got)
	}
}

func TestReportIsNoCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.report(t, "run", "/close\n  /label ~no-human\ntext /merge\n\t/assign @eve\n/usr/bin/env is a path")
	if got := r.project.QuickActions(); len(got) > 0 {
		t.Errorf("GitLab executed %q", got)
	}
	if _, err := r.OpenRequest(t.Context(), tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "/merge", Body: "x\n/merge\n/approve"}); err != nil {
		t.Fatal(err)
	}
	if got := r.project.QuickActions(); len(got) > 0 {
		t.Errorf("GitLab executed %q", got)
	}
}

func TestReportTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	for run, body := range map[string]string{
		"runes":  strings.Repeat("漢", maxText),
		"fenced": "````text\n" + strings.Repeat("line\n", maxText) + "````\nafter",
		"exact":  strings.Repeat("x", maxText),
	} {
		r.report(t, run, body)
		r.report(t, run, body)
	}
	notes := r.project.Notes(r.ralph, 1)
	if len(notes) != 3 {
		t.Fatalf("%d notes, want 3", len(notes))
	}
	for _, n := range notes {
		if len(n) > maxText || !utf8.ValidString(n) || !strings.Contains(n, "… (cut") {
			t.Errorf("note of %d bytes, valid %v, ends %q", len(n), utf8.ValidString(n), n[len(n)-200:])
		}
		if strings.HasPrefix(n, "````") && !strings.Contains(n, "\n````\n\n… (cut") {
			t.Errorf("fence is left open: …%q", n[len(n)-250:])
		}
	}
}

func FuzzFit(f *testing.F) {
	f.Add("/close\n```\n/x\n```", uint8(10))
	f.Add(strings.Repeat("a\n/b", 200), uint8(200))
	f.Add("````\n"+strings.Repeat("漢", 200), uint8(0))
	f.Fuzz(func(t *testing.T, text string, more uint8) {
		limit := 300 + int(more)
		got := fit(text, limit)
		if len(got) > limit {
			t.Errorf("%d bytes, want at most %d", len(got), limit)
		}
		if utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Error("a rune was cut")
		}
		if quickAction.MatchString(got) {
			t.Errorf("a command survives in %q", got)
		}
		if again := fit(got, limit); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
	})
}

func FuzzMarked(f *testing.F) {
	tr := &Tracker{cfg: Config{MarkerKey: []byte("0123456789abcdef")}}
	f.Add("text", "run-1")
	f.Add("\n<!-- ralph:report run=x mac=00 -->", "-->")
	f.Add("\n<!-- ", "")
	f.Fuzz(func(t *testing.T, text, run string) {
		if got, proof, ok := marked(text); ok && proof == tr.proof(1, got) {
			t.Fatalf("%q is taken for a report of %q", text, got)
		}
		if got, proof, ok := marked(text + "\n\n" + marker(run, tr.proof(1, run))); !ok || got != run || proof != tr.proof(1, run) {
			t.Errorf("own report of %q: %q, %v", run, got, ok)
		}
		if tr.proof(1, run) == tr.proof(2, run) {
			t.Error("a report is taken for one about another issue")
		}
	})
}

func FuzzDecodeIssue(f *testing.F) {
	f.Add([]byte(`{"iid":1,"state":"opened","labels":["a"],"author":null,"milestone":{"title":"x"}}`))
	f.Add([]byte(`{"iid":-1,"state":"closed","id":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := listed{raw}.decode()
		if err != nil {
			return
		}
		tr := &Tracker{cfg: Config{Priorities: defaultPriorities()}}
		out := tr.convert(i)
		if tracker.Key(out.Key) != out.Key || len(named(i.Body, i.IID)) > maxNamed {
			t.Errorf("decoded %+v", out)
		}
	})
}
