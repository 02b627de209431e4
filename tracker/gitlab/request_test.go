package gitlab

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func (r *rig) open(t *testing.T, q tracker.Request) tracker.RequestRef {
	t.Helper()
	got, err := r.OpenRequest(t.Context(), q)
	if err != nil {
		t.Fatalf("OpenRequest: %v", err)
	}
	return got
}

func TestOpenRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddLabel("Review", false)
	q := tracker.Request{
		Key: "1", Head: "ralph/1", Base: "main", Title: "WIP: Draft:  fix\nit", Body: "Closes #1", Draft: true, Labels: []string{"review"},
		Reviewers: []string{"ada"}, Assignees: []string{"Grace"},
	}
	first := r.open(t, q)
	if first.Number != 1 || !first.Draft || !strings.HasSuffix(first.URL, "/merge_requests/1") {
		t.Errorf("opened %+v", first)
	}
	if again := r.open(t, q); again != first || r.project.Merges()[0].Writes != 1 {
		t.Errorf("opened again %+v with %d writes, want the same with one", again, r.project.Merges()[0].Writes)
	}
	m := r.project.Merges()[0]
	if m.Title != "Draft: fix it" || m.Labels[0] != "Review" || m.Reviewers[0] != r.ada || m.Assignees[0] != r.grace || m.RemoveSource {
		t.Errorf("merge request %+v", m)
	}
	r.project.SetMerge(1, func(m *gitlabtest.Merge) { m.Reviewers, m.Labels = nil, append(m.Labels, "by hand") })
	q.Draft, q.Body, q.Base = false, "More. Closes #1", "develop"
	if got := r.open(t, q); got.Number != 1 || got.Draft {
		t.Errorf("updated %+v", got)
	}
	m = r.project.Merges()[0]
	if m.Title != "fix it" || m.Description != q.Body || m.Target != "develop" || len(m.Labels) != 2 || m.Reviewers != nil {
		t.Errorf("updated merge request %+v", m)
	}
	r.project.SetMerge(1, func(m *gitlabtest.Merge) { m.State = "closed" })
	if got := r.open(t, q); got.Number != 2 {
		t.Errorf("after a person closed it: %+v, want a new one", got)
	}
}

// Reviewers and assignees that GitLab does not know do not prevent publishing.
func TestOpenRequestOfUnknownPeople(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	r := newRig(t, func(c *forge.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	q := tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Reviewers: []string{"nobody", "ada"}, Assignees: []string{"gone"}}
	r.open(t, q)
	if m := r.project.Merges(); len(m) != 1 || len(m[0].Reviewers) != 1 || m[0].Reviewers[0] != r.ada || m[0].Assignees != nil {
		t.Errorf("merge requests %+v", m)
	}
	for _, name := range []string{"nobody", "gone"} {
		if strings.Count(log.String(), "user="+name) != 1 {
			t.Errorf("%s is not named once:\n%s", name, log.String())
		}
	}
	r.server.Inject(gitlabtest.Fault{Status: http.StatusUnauthorized}.At("/users"))
	q.Head = "ralph/2"
	if _, err := r.OpenRequest(t.Context(), q); err == nil {
		t.Error("GitLab's refusal of everything is no error")
	}
}

func TestTitle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		title string
		draft bool
		want  string
	}{
		{"plain", false, "plain"},
		{"plain", true, "Draft: plain"},
		{"[Draft] (draft) WIP: x", false, "x"},
		{"drafting: x", false, "drafting: x"},
		{" \u202e\n", false, "head"},
		{strings.Repeat("漢", 300), true, "Draft: " + strings.Repeat("漢", 247) + "…"},
	} {
		if got := titleOf(tracker.Request{Head: "head", Title: tt.title, Draft: tt.draft}); got != tt.want {
			t.Errorf("title of %q is %q, want %q", tt.title, got, tt.want)
		}
	}
}
