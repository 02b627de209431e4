package gitlab

import (
	"errors"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestApproved(t *testing.T) {
	t.Parallel()
	type act = func(r *rig)
	label := func(who func(*rig) *gitlabtest.User) act {
		return func(r *rig) { r.project.Label(who(r), 1, "No-Human") }
	}
	ada := func(r *rig) *gitlabtest.User { return r.ada }
	for name, tt := range map[string]struct {
		acts []act
		want string // part of the reason; empty: approved
	}{
		"described after with a ticked task": {[]act{
			label(ada), func(r *rig) { r.project.Describe(r.eve, 1, "- [x] one\nand more", true) },
		}, "eve, who has no write permission, edited"},
		"something unknown done after by a stranger": {[]act{
			label(ada), func(r *rig) { r.project.Comment(r.eve, 1, "rewrote the whole thing", true) },
		}, "eve, who has no write permission, edited"},
		"mentioned and commented after by a stranger": {[]act{
			label(ada), func(r *rig) {
				r.project.Comment(r.eve, 1, "mentioned in issue other/project#5", true)
				r.project.Comment(r.eve, 1, "changed the description", false)
			},
		}, ""},
		"another spelling added": {[]act{label(ada), func(r *rig) { r.project.Label(r.eve, 1, "no-human") }}, "by eve"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
			for _, a := range tt.acts {
				a(r)
			}
			by, reason := r.Approved(t.Context(), r.get(t, "1"), "no-human")
			switch {
			case tt.want == "" && (reason != nil || by != "ada"):
				t.Errorf("by %q: %v; want approved by ada", by, reason)
			case tt.want != "" && (reason == nil || !strings.Contains(reason.Error(), tt.want)):
				t.Errorf("reason %v, want %q in it", reason, tt.want)
			}
		})
	}
}

// TestApprovedByItself: a label set by ralph does not count, since an agent might trick ralph into setting it.
func TestApprovedByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ralph.Bot = true
	itself := r.tracker(t, func(c *forge.Config) { c.TrustedBots = []int64{int64(r.ralph.ID)} })
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.ralph, Labels: []string{"no-human"}})
	if _, reason := itself.Approved(t.Context(), r.get(t, "1"), "no-human"); reason == nil || !strings.Contains(reason.Error(), "ralph's own account") {
		t.Errorf("reason %v, want ralph's own account", reason)
	}
}

// TestApprovedUnknown: a failure of the API is neither an approval nor a final refusal.
func TestApprovedUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	r.project.Label(r.ada, 1, "no-human")
	i := r.get(t, "1")
	for _, part := range []string{"/resource_label_events", "/members/all/", "/users/", "/notes"} {
		r.server.Inject(func(c forgetest.Call) *gitlabtest.Fault {
			if strings.Contains(c.Path, part) {
				return &gitlabtest.Fault{Status: 503}
			}
			return nil
		})
		_, reason := r.Approved(t.Context(), i, "no-human")
		if _, ok := errors.AsType[*tracker.UnavailableError](reason); !ok {
			t.Errorf("without %s: %v, want *UnavailableError", part, reason)
		}
	}
}
