package gitlab

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func (r *rig) report(t *testing.T, run, body string) {
	t.Helper()
	if err := r.Report(t.Context(), "1", tracker.Report{Run: run, Body: body}); err != nil {
		t.Fatalf("Report(%s): %v", run, err)
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

func FuzzNoActions(f *testing.F) {
	f.Add("/close\n```\n/x\n```", uint8(10))
	f.Add(strings.Repeat("a\n/b", 200), uint8(200))
	f.Fuzz(func(t *testing.T, text string, more uint8) {
		got := tracker.Fit(escapeActions(text), 300+int(more))
		if quickAction().MatchString(got) {
			t.Errorf("a command survives in %q", got)
		}
		if again := escapeActions(got); again != got {
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
		if tracker.Key(out.Key) != out.Key || len(namedBlockers(i.Body, i.IID)) > maxNamed {
			t.Errorf("decoded %+v", out)
		}
	})
}
