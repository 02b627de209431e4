package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// Anybody who may push can write a claim saying that somebody asked for the issue again, with its current text. This
// approves nothing if the person who set the label is not allowed to.
func TestForgeForgedApproval(t *testing.T) {
	t.Parallel()
	f := onGitLab(t, newRepository(t))
	s := newScene(t, appends)
	reporter := f.lab.AddUser(gitlabtest.User{Username: "reporter"})
	f.project.SetMember(reporter, gitlabtest.Reporter)
	n := f.project.AddIssue(gitlabtest.Issue{Title: "Do it", Description: "Please.", Author: reporter})
	f.project.Label(reporter, n, "no-human")
	hash := (tracker.Issue{Title: "Do it", Body: "Please."}).Hash()
	for _, labelled := range []string{"false", "true"} {
		claim := `{"version":1,"nonce":"A","generation":1,"record":{"run":"20261129-120516-799a92928949","hash":"` + hash +
			`","asked":{"id":"1","by":"ada","at":"2026-11-29T12:05:16Z","labelled":` + labelled + `}}}`
		at := f.bare.git(t, "commit-tree", "-m", claim, f.bare.git(t, "rev-parse", "main^{tree}"))
		f.bare.git(t, "update-ref", "refs/ralph/claims/1", at)
		r := repository(filepath.Join(t.TempDir(), "clone"))
		clone(t, f, r)
		s.start(t, r, append(f.env, "RALPH_WRITE_SPACING=0s"), append([]string{"work", "--gate", "true"}, f.flags...)...).end(t)
		if labels := f.labels("1"); !slices.Equal(labels, []string{"no-human"}) || f.report("1") != "" {
			t.Errorf("labelled %s: it was worked: %q, %s", labelled, labels, f.report("1"))
		}
	}
}
