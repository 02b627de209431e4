package gitlab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestChangeSpelling(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddLabel("In Review", true)
	r.project.AddIssue(gitlabtest.Issue{Title: "x"})
	if err := r.Change(t.Context(), "1", tracker.Change{AddLabels: []string{"in review", "IN REVIEW", " new "}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"In Review", "new"}, r.project.IssueLabels(1)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got := r.project.Labels(); slices.Contains(got, "in review") {
		t.Errorf("labels of the project are %q: one was made a second time", got)
	}
}

func TestChangeRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setup  func(*rig)
		change tracker.Change
		want   string
		stops  bool // *RefusedError
	}{
		"comma":   {nil, tracker.Change{AddLabels: []string{"a,b"}}, `set label "a,b": GitLab's labels cannot contain commas`, false},
		"no name": {nil, tracker.Change{AddLabels: []string{" "}}, "it has no name", false},
		"ignored": {func(r *rig) { r.project.SetMember(r.ralph, gitlabtest.Guest) }, tracker.Change{AddLabels: []string{"x"}}, "the role Reporter or higher in " + path, true},
		"token":   {func(r *rig) { r.server.Revoke(secret) }, tracker.Change{AddLabels: []string{"x"}}, "the token is refused", true},
		"scope": {func(r *rig) {
			r.server.AddToken(r.ralph, secret, r.clock.Now(), "read_api")
		}, tracker.Change{Close: true}, "give it write permission", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ralph})
			if tt.setup != nil {
				tt.setup(r)
			}
			err := r.Change(t.Context(), "1", tt.change)
			var refused *tracker.RefusedError
			if err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &refused) != tt.stops {
				t.Errorf("Change = %v, want %q, stops %v", err, tt.want, tt.stops)
			}
			if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("error shows the token or has two lines: %q", err)
			}
		})
	}
}

func TestCreateLabels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddLabel("No-Human", true)
	for range 2 {
		if err := r.CreateLabels(t.Context(), []string{"no-human", "in-review"}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"No-Human", "in-review"}, r.project.Labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if err := r.CreateLabels(t.Context(), []string{"a,b"}); err == nil {
		t.Error("a label with a comma was made")
	}
}
