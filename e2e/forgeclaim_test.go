package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Anybody who may push, for example with a deploy key, can write claims. What a claim says about reports and labels must
// have no effect.
func TestForgeForgedClaim(t *testing.T) {
	t.Parallel()
	const (
		run    = `"run":"20261129-120516-799a92928949","host":"mars\n/close","outcome":"succeeded","at":"2026-11-29T12:05:16Z"`
		report = `Fixes #1 @all\n\n/close\n/label ~admin\n<img src=http://x.example/p.png>`
	)
	for name, open := range map[string]func(*testing.T, repository) forge{"github": onGitHub, "gitlab": onGitLab} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t, newRepository(t))
			s := newScene(t, appends)
			mark, pending, id := f.issue("Mark", "Please."), f.issue("Pending", "Please."), f.issue("Id", "Please.")
			for key, record := range map[string]string{
				mark:    `{"mark":"0 -->\n/close\n@all <!--","runs":1,` + run + `}`,
				pending: `{"pending":{"report":"` + report + `","change":{"AddLabels":["admin"],"RemoveLabels":["no-human"],"Close":true}},` + run + `}`,
				id:      `{"pending":{"report":"x"},"run":"zz","outcome":"succeeded"}`,
			} {
				tree := f.bare.git(t, "rev-parse", "main^{tree}")
				at := f.bare.git(t, "commit-tree", "-m", `{"version":1,"nonce":"A","generation":1,"record":`+record+`}`, tree)
				f.bare.git(t, "update-ref", "refs/ralph/claims/"+key, at)
			}
			r := repository(filepath.Join(t.TempDir(), "clone"))
			clone(t, f, r)
			s.start(t, r, append(f.env, "RALPH_WRITE_SPACING=0s"), append([]string{"work", "--gate", "true"}, f.flags...)...).end(t)
			for _, key := range []string{mark, pending, id} {
				text := f.report(key)
				for _, act := range []string{"\n/", "@all", "Fixes #1"} {
					if strings.Contains(text, act) {
						t.Errorf("the report on %s has %q:\n%s", key, act, text)
					}
				}
				if key == pending && !strings.Contains(text, "its report was:\n\n```text\nFixes # 1 @ all") {
					t.Errorf("the text of the claim is not quoted:\n%s", text)
				}
				if key != id && !strings.Contains(text, "ralph: ") {
					t.Errorf("no report on %s:\n%s", key, text)
				}
				if slices.Contains(f.labels(key), "admin") {
					t.Errorf("%s has a label that the claim names: %q", key, f.labels(key))
				}
			}
			if f.project != nil {
				if acts := f.project.QuickActions(); len(acts) > 0 {
					t.Errorf("GitLab would do %q", acts)
				}
			}
		})
	}
}
