package gitlab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		setup func(*rig)
		want  []string // findings that are not ok: severity, what, part of the detail
	}{
		"good":           {func(*rig) {}, nil},
		"labels missing": {func(r *rig) { r.project.AddLabel("in-review", false) }, []string{"warn labels do not exist: failed"}},
		"no api": {func(r *rig) { r.server.AddToken(r.ralph, secret, time.Time{}, "read_api", "sudo") },
			[]string{"fail token scopes read_api, sudo: without api", "warn token the scope sudo"}},
		"ends soon": {func(r *rig) { r.server.AddToken(r.ralph, secret, time.Now().Add(30*time.Hour), "api") }, []string{"warn token expiry "}},
		"revoked":   {func(r *rig) { r.server.Revoke(secret) }, []string{"fail gitlab tracker refuses: "}},
		"reporter":  {func(r *rig) { r.project.SetMember(r.ralph, gitlabtest.Reporter) }, []string{"fail role access level 20, want 30"}},
		"owner":     {func(r *rig) { r.project.SetMember(r.ralph, gitlabtest.Owner) }, []string{"warn role Owner is more"}},
		"archived":  {func(r *rig) { r.project.Archived = true }, []string{"fail project group/sub-group/pro.ject is archived"}},
		"no issues": {func(r *rig) { r.project.NoIssues = true }, []string{"fail project group/sub-group/pro.ject has no issues"}},
		"clock":     {func(r *rig) { r.server.SkewClock(time.Hour) }, []string{"fail clock is -"}},
		"admin":     {func(r *rig) { r.ralph.Admin = true }, []string{"warn identity ralph administers"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			e := tracker.Expectation{Push: true}
			if strings.Contains(name, "labels") {
				e.Labels = []string{"In-Review", "failed"}
			}
			tt.setup(r)
			var got []string
			for _, f := range r.Inspect(t.Context(), e) {
				if strings.Contains(fmt.Sprint(f), secret) || strings.Contains(f.Detail, "\n") {
					t.Errorf("finding %+v shows the token or has two lines", f)
				}
				if f.Severity != tracker.OK {
					got = append(got, fmt.Sprintf("%s %s %s", f.Severity, f.Subject, f.Detail))
				}
				if f.Severity == tracker.Fail && f.Fix == "" {
					t.Errorf("finding %+v does not say how to fix it", f)
				}
			}
			bad := len(got) != len(tt.want)
			for n := 0; !bad && n < len(got); n++ {
				bad = !strings.HasPrefix(got[n], tt.want[n])
			}
			if bad {
				t.Errorf("findings:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			for _, c := range r.server.Calls() {
				if c.Write() {
					t.Errorf("inspection wrote: %s %s", c.Method, c.Path)
				}
			}
		})
	}
}
