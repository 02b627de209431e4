package gitlab

import (
	"errors"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestApproved(t *testing.T) {
	t.Parallel()
	type act = func(r *rig)
	label := func(who func(*rig) *gitlabtest.User) act {
		return func(r *rig) { r.project.Label(who(r), 1, "No-Human") }
	}
	ada := func(r *rig) *gitlabtest.User { return r.ada }
	grace := func(r *rig) *gitlabtest.User { return r.grace }
	bot := func(r *rig) *gitlabtest.User {
		u := r.server.AddUser(gitlabtest.User{ID: 77, Username: "automation", Bot: true})
		r.project.SetMember(u, gitlabtest.Maintainer)
		return u
	}
	for name, tt := range map[string]struct {
		acts []act
		want string // part of the reason; empty: approved
	}{
		"by a maintainer": {[]act{label(ada)}, ""},
		"edited before by the author": {[]act{
			func(r *rig) { r.project.Describe(r.eve, 1, "new", false) }, label(ada),
		}, ""},
		"described after by the author": {[]act{
			label(ada), func(r *rig) { r.project.Describe(r.eve, 1, "new", false) },
		}, "eve, who has no write permission, edited the text after the label no-human was set"},
		"described after with a ticked task": {[]act{
			label(ada), func(r *rig) { r.project.Describe(r.eve, 1, "- [x] one\nand more", true) },
		}, "eve, who has no write permission, edited"},
		"renamed after by the author": {[]act{
			label(ada), func(r *rig) { r.project.Rename(r.eve, 1, "new") },
		}, "eve, who has no write permission, edited"},
		"edited after by a reporter": {[]act{
			label(ada), func(r *rig) { r.project.Describe(r.grace, 1, "new", false) },
		}, "grace, who has no write permission, edited"},
		"edited after by a maintainer": {[]act{
			label(ada), func(r *rig) { r.project.Describe(r.ada, 1, "new", false) },
		}, ""},
		"edited after, labelled again": {[]act{
			label(ada), func(r *rig) { r.project.Describe(r.eve, 1, "new", false) },
			func(r *rig) { r.project.Unlabel(r.ada, 1, "No-Human") }, label(ada),
		}, ""},
		"something unknown done after by a stranger": {[]act{
			label(ada), func(r *rig) { r.project.Comment(r.eve, 1, "rewrote the whole thing", true) },
		}, "eve, who has no write permission, edited"},
		"mentioned and commented after by a stranger": {[]act{
			label(ada), func(r *rig) {
				r.project.Comment(r.eve, 1, "mentioned in issue other/project#5", true)
				r.project.Comment(r.eve, 1, "changed the description", false)
			},
		}, ""},
		"by a reporter":          {[]act{label(grace)}, "grace, who has no write permission"},
		"by the author":          {[]act{label(func(r *rig) *gitlabtest.User { return r.eve })}, "who has no write permission"},
		"by a bot":               {[]act{label(bot)}, "(id 77), who is a bot"},
		"first ada, then grace":  {[]act{label(ada), func(r *rig) { r.project.Unlabel(r.ada, 1, "No-Human") }, label(grace)}, "by grace"},
		"first grace, then ada":  {[]act{label(grace), func(r *rig) { r.project.Unlabel(r.ada, 1, "No-Human") }, label(ada)}, ""},
		"by one who left":        {[]act{label(ada), func(r *rig) { r.project.SetMember(r.ada, 0) }}, "who has no write permission"},
		"not labelled":           {nil, "it is not known who set"},
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

// TestTextOfBeforeTheLabel: somebody changes the text back while ralph reads the issue, and then a person sets the label again.
func TestTextOfBeforeTheLabel(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*rig){
		"body":  func(r *rig) { r.project.Describe(r.eve, 1, "Good.", false) },
		"title": func(r *rig) { r.project.Rename(r.eve, 1, "Good") },
		"":      func(*rig) {},
	} {
		r := newRig(t)
		r.project.AddIssue(gitlabtest.Issue{Title: "Evil", Author: r.eve})
		r.project.Label(r.ada, 1, "no-human")
		i := r.get(t, "1")
		change(r)
		r.project.Unlabel(r.ada, 1, "no-human")
		r.project.Label(r.ada, 1, "no-human")
		_, reason := r.Approved(t.Context(), i, "no-human")
		if changed := reason != nil && strings.Contains(reason.Error(), "changed while it was read"); changed != (name != "") {
			t.Errorf("%q changed: %v", name, reason)
		}
	}
}

func TestApprovedListedBot(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *forge.Config) { c.TrustedBots = []int64{77} })
	bot := r.server.AddUser(gitlabtest.User{ID: 77, Username: "automation", Bot: true})
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	r.project.Label(bot, 1, "no-human")
	if by, reason := r.Approved(t.Context(), r.get(t, "1"), "no-human"); by != "automation" || reason != nil {
		t.Errorf("by %q: %v; want approved by automation", by, reason)
	}
}

// TestApprovedByItself has ralph label an issue, as an agent might trick it into doing.
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

// TestApprovedUnknown has the API fail: the result is neither an approval nor a final refusal.
func TestApprovedUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.project.AddIssue(gitlabtest.Issue{Title: "x", Author: r.eve})
	r.project.Label(r.ada, 1, "no-human")
	i := r.get(t, "1")
	for _, part := range []string{"/resource_label_events", "/members/all/", "/users/", "/notes"} {
		r.server.Inject(func(c gitlabtest.Call) *gitlabtest.Fault {
			if strings.Contains(c.Path, part) {
				return &gitlabtest.Fault{Status: 503}
			}
			return nil
		})
		_, reason := r.Approved(t.Context(), i, "no-human")
		var passing *tracker.UnavailableError
		if !errors.As(reason, &passing) {
			t.Errorf("without %s: %v, want *UnavailableError", part, reason)
		}
	}
}
