package gitlab

import (
	"errors"
	"fmt"
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

func TestOpenRequestOfSomebodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddMerge(gitlabtest.Merge{Title: "mine", Source: "ralph/1", Target: "main", Author: r.ada})
	got := r.open(t, tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Body: "y"})
	if m := r.project.Merges(); got.Number != 1 || len(m) != 1 || m[0].Title != "mine" {
		t.Errorf("opened %+v, there are %+v", got, m)
	}
}

// Of several open requests of the branch the one for the base counts, ralph's own before another's. One of somebody who may not
// direct ralph, such as a former member, never counts.
func TestOpenRequestAmongOthers(t *testing.T) {
	t.Parallel()
	type merge struct{ by, base string }
	for _, c := range []struct {
		there []merge
		want  int // 0: the last one is in the way
	}{
		{[]merge{{"ada", "release"}}, 2},
		{[]merge{{"ada", "release"}, {"ralph", "release"}}, 2},
		{[]merge{{"ada", "main"}, {"ralph", "release"}}, 1},
		{[]merge{{"ralph", "release"}, {"ralph", "main"}}, 2},
		{[]merge{{"ralph", "main"}, {"ada", "main"}}, 1},
		{[]merge{{"eve", "main"}}, 0},
		{[]merge{{"grace", "main"}}, 0},
		{[]merge{{"eve", "release"}}, 2},
		{[]merge{{"ralph", "release"}, {"eve", "main"}}, 0},
		{[]merge{{"ralph", "main"}, {"eve", "main"}}, 1},
	} {
		r := newRig(t)
		by := map[string]*gitlabtest.User{"ada": r.ada, "ralph": r.ralph, "grace": r.grace, "eve": r.eve}
		for _, m := range c.there {
			r.project.AddMerge(gitlabtest.Merge{Title: "t", Source: "ralph/1", Target: m.base, Author: by[m.by]})
		}
		got, err := r.OpenRequest(t.Context(), tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Body: "y"})
		if n := len(c.there); c.want == 0 {
			if says := fmt.Sprintf("merge request !%d by %s", n, c.there[n-1].by); !errors.Is(err, tracker.ErrOccupied) || !strings.Contains(err.Error(), says) || len(r.project.Merges()) != n {
				t.Errorf("beside %+v: opened %+v, %v, want an error that names the last", c.there, got, err)
			}
			continue
		}
		if m := r.project.Merges()[c.want-1]; err != nil || got.Number != c.want || m.Target != "main" || (m.Title == "x") != (m.Author == r.ralph) {
			t.Errorf("beside %+v: opened %+v, %v, want %d, %+v", c.there, got, err, c.want, m)
		}
	}
}

// Somebody whom GitLab does not know keeps nothing from being published.
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
	r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
		if strings.HasSuffix(c.Path, "/users") {
			return &gitlabtest.Fault{Status: http.StatusUnauthorized}
		}
		return nil
	})
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

// TestOpenRequestUnsure loses the answer, or has somebody be faster: one call is enough, and there is one request.
func TestOpenRequestUnsure(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]func(*rig) *gitlabtest.Fault{
		"answer lost": func(*rig) *gitlabtest.Fault { return &gitlabtest.Fault{Reset: true, Effect: true} },
		"raced": func(r *rig) *gitlabtest.Fault {
			r.project.AddMerge(gitlabtest.Merge{Title: "first", Source: "ralph/1", Target: "main", Author: r.ralph})
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
				if c.Method == http.MethodPost {
					return on(r)
				}
				return nil
			})
			got := r.open(t, tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Body: "y"})
			if m := r.project.Merges(); got.Number != 1 || len(m) != 1 || m[0].Title != "x" || m[0].Description != "y" {
				t.Errorf("opened %+v, there are %+v", got, m)
			}
		})
	}
}

// The latest request of the branch counts, and only while it is closed and not merged. Those of strangers do not count, nor do
// people's into another base.
func TestRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		by                               *gitlabtest.User
		source, target, state, sha, want string
	}{
		{r.eve, "ralph/1", "main", "closed", "7", ""},
		{r.ralph, "ralph/1", "main", "closed", "1", "1"}, {r.ralph, "ralph/12", "main", "closed", "2", "1"},
		{r.eve, "ralph/1", "main", "opened", "7", "1"}, {r.ada, "ralph/1", "old", "closed", "8", "1"},
		{r.ralph, "ralph/1", "main", "opened", "3", ""}, {r.grace, "ralph/1", "main", "closed", "7", ""},
		{r.ralph, "ralph/1", "old", "closed", "4", "4"}, {r.ada, "ralph/1", "main", "closed", "8", "8"},
		{r.ralph, "ralph/1", "main", "merged", "5", ""},
	} {
		r.project.AddMerge(gitlabtest.Merge{Title: "Fix", Source: c.source, Target: c.target, Author: c.by, State: c.state, SHA: strings.Repeat(c.sha, 40)})
		commit, url, err := r.Refused(t.Context(), "ralph/1", "main")
		if err != nil || commit != strings.Repeat(c.want, 40) || (url == "") != (c.want == "") {
			t.Errorf("after %+v: refused %q at %q, %v", c, commit, url, err)
		}
	}
}
