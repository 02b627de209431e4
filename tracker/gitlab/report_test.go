package gitlab

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func (r *rig) report(t *testing.T, run, body string) {
	t.Helper()
	if err := r.Report(t.Context(), "1", tracker.Report{Run: run, Body: body}); err != nil {
		t.Fatalf("Report(%s): %v", run, err)
	}
}

// TestReportMarkerSpoofed has strangers, and the agent through ralph's own account, copy a marker.
func TestReportMarkerSpoofed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.project.AddIssue(gitlabtest.Issue{Title: "y"})
	r.report(t, "run-1", "Working.")
	mine := r.project.Notes(r.ralph, 1)[0]
	marker, _ := strings.CutSuffix(mine, "Working.")
	r.project.Comment(r.eve, 1, marker+"do as I say", false) // a valid marker, another account
	r.project.Comment(r.ralph, 2, marker+"copied", false)    // ralph's account, another issue
	r.project.Comment(r.ralph, 1, strings.Replace(marker, "mac=", "mac=00", 1)+"said by hand", false)
	r.report(t, "run-1", "Done.")
	if got := r.project.Notes(r.eve, 1)[0]; !strings.HasSuffix(got, "do as I say") {
		t.Errorf("ralph edited another's note: %q", got)
	}
	if got := r.project.Notes(r.ralph, 1); len(got) != 2 || !strings.HasSuffix(got[0], "\nDone.") || !strings.HasSuffix(got[1], "said by hand") {
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

// TestReportLeftTwice has two notes of one run, as a lagging replica may cause.
func TestReportLeftTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	r.report(t, "run", "one")
	r.project.Comment(r.ralph, 1, r.project.Notes(r.ralph, 1)[0], false)
	r.report(t, "run", "two")
	if got := r.project.Notes(r.ralph, 1); len(got) != 1 || !strings.HasSuffix(got[0], "\ntwo") {
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
		n := r.project.Notes(r.ralph, 1)[0]
		if !strings.HasPrefix(n, "<!-- ralph:report run=") || !strings.HasSuffix(n, " -->\ntwo") || strings.Count(n, "-->") != 1 {
			t.Errorf("note %q", n)
		}
	}
	if got := len(r.project.Notes(r.ralph, 1)); got != 1 {
		t.Errorf("%d notes, want one", got)
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
		"runes":  strings.Repeat("漢", forge.MaxText),
		"fenced": "````text\n" + strings.Repeat("line\n", forge.MaxText) + "````\nafter",
		"exact":  strings.Repeat("x", forge.MaxText),
	} {
		r.report(t, run, body)
		r.report(t, run, body)
		notes := r.project.Notes(r.ralph, 1)
		if len(notes) != 1 {
			t.Fatalf("%d notes, want one", len(notes))
		}
		n := notes[0]
		if len(n) > forge.MaxText || !utf8.ValidString(n) || !strings.Contains(n, "… (cut") {
			t.Errorf("note of %d bytes, valid %v, ends %q", len(n), utf8.ValidString(n), n[len(n)-200:])
		}
		if strings.Contains(n, "\n````text") && !strings.Contains(n, "\n````\n\n… (cut") {
			t.Errorf("fence is left open: …%q", n[len(n)-250:])
		}
	}
}

func FuzzNoActions(f *testing.F) {
	f.Add("/close\n```\n/x\n```", uint8(10))
	f.Add(strings.Repeat("a\n/b", 200), uint8(200))
	f.Fuzz(func(t *testing.T, text string, more uint8) {
		got := tracker.Fit(noActions(text), 300+int(more))
		if quickAction().MatchString(got) {
			t.Errorf("a command survives in %q", got)
		}
		if again := noActions(got); again != got {
			t.Errorf("not stable: %q, then %q", got, again)
		}
	})
}

func FuzzDecodeIssue(f *testing.F) {
	f.Add([]byte(`{"iid":1,"state":"opened","labels":["a"],"author":null,"milestone":{"title":"x"}}`))
	f.Add([]byte(`{"iid":-1,"state":"closed","id":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		i, err := transport.Decode(raw, completeIssue)
		if err != nil {
			return
		}
		tr := &Tracker{}
		out := tr.convert(i)
		if tracker.Key(out.Key) != out.Key || len(namedIn(i.Body, i.IID)) > maxNamed {
			t.Errorf("decoded %+v", out)
		}
	})
}
