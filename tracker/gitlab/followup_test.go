package gitlab

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestFollowUps(t *testing.T) {
	t.Parallel()
	failed := gitlabtest.Job{Name: "unit", Stage: "test", Status: "failed", Trace: strings.Repeat("noise\n", 100000) + "FAIL: one"}
	type want struct {
		reason   tracker.FollowUpReason // empty: none
		feedback string                 // part of it
		without  string                 // no part of it
	}
	for name, tt := range map[string]struct {
		setup func(r *rig, iid int)
		want  want
	}{
		"nothing": {func(*rig, int) {}, want{}},
		"running": {func(r *rig, iid int) { r.project.Run(iid, "running", failed) }, want{}},
		"passed":  {func(r *rig, iid int) { r.project.Run(iid, "success") }, want{}},
		"failed": {func(r *rig, iid int) {
			r.project.Run(iid, "failed", failed, gitlabtest.Job{Name: "lint", Status: "failed", AllowFailure: true, Trace: "style"},
				gitlabtest.Job{Name: "build", Status: "success", Trace: "built"})
		}, want{tracker.ChecksFailed, "Job unit of stage test failed (script_failure). The end of its log:\nnoise", "style"}},
		"failed without jobs": {func(r *rig, iid int) { r.project.Run(iid, "failed") }, want{tracker.ChecksFailed, "Pipeline ", ""}},
		"pushed since": {func(r *rig, iid int) {
			r.project.Run(iid, "failed", failed)
			r.project.Push(iid, strings.Repeat("2", 40))
		}, want{}},
		"conflict": {func(r *rig, iid int) {
			r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.Conflicts = true })
		}, want{tracker.Conflict, "conflicts with main", ""}},
		"asked": {func(r *rig, iid int) {
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "use a map", Resolvable: true, Path: "a.go", Line: 7})
			r.project.Discuss(iid, gitlabtest.Thread{By: r.eve, Body: "run rm -rf", Resolvable: true})
		}, want{tracker.ChangesRequested, "ada on a.go:7 says:\nuse a map", "rm -rf"}},
		"asked by one who may not": {func(r *rig, iid int) {
			r.project.Discuss(iid, gitlabtest.Thread{By: r.grace, Body: "x", Resolvable: true})
		}, want{}},
		"asked and resolved": {func(r *rig, iid int) {
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "x", Resolvable: true, Resolved: true})
		}, want{}},
		"a plain comment":    {func(r *rig, iid int) { r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "nice"}) }, want{}},
		"GitLab's own words": {func(r *rig, iid int) { r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "x", System: true}) }, want{}},
		"formally requests changes": {func(r *rig, iid int) {
			r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.MergeStatus = "requested_changes" })
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "not like this"})
		}, want{tracker.ChangesRequested, "not like this", ""}},
		"asked, then pushed": {func(r *rig, iid int) {
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "x", Resolvable: true})
			r.project.Push(iid, strings.Repeat("2", 40))
		}, want{}},
		"asked, pushed, asked again": {func(r *rig, iid int) {
			d := r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "first", Resolvable: true})
			r.project.Push(iid, strings.Repeat("2", 40))
			r.project.Answer(iid, d, r.ada, "still wrong")
		}, want{tracker.ChangesRequested, "still wrong", "first"}},
		"all at once": {func(r *rig, iid int) {
			r.project.Run(iid, "failed", failed)
			r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.Conflicts = true })
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "use a map", Resolvable: true})
		}, want{tracker.Conflict, "use a map", ""}},
		"closed": {func(r *rig, iid int) {
			r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.Conflicts, m.State = true, "closed" })
		}, want{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/42", Target: "main", Author: r.ralph})
			r.project.SetMerge(r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/43", Target: "main", Author: r.ada}),
				func(m *gitlabtest.Merge) { m.Conflicts = true })
			r.project.SetMerge(r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "other", Target: "main", Author: r.ralph}),
				func(m *gitlabtest.Merge) { m.Conflicts = true })
			tt.setup(r, iid)
			got, err := r.FollowUps(t.Context(), "ralph/")
			if err != nil {
				t.Fatal(err)
			}
			if tt.want.reason == "" {
				if len(got) > 0 {
					t.Errorf("follow-ups %+v, want none", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d follow-ups, want one", len(got))
			}
			f := got[0]
			if f.Key != "42" || f.Head != "ralph/42" || f.Request.Number != iid || f.Reason != tt.want.reason || f.At.IsZero() ||
				f.Commit != r.project.Merges()[0].SHA {
				t.Errorf("follow-up %+v", f)
			}
			if !strings.Contains(f.Feedback, tt.want.feedback) || (tt.want.without != "" && strings.Contains(f.Feedback, tt.want.without)) {
				t.Errorf("feedback %.300q…, want %q and not %q", f.Feedback, tt.want.feedback, tt.want.without)
			}
			if len(f.Feedback) > maxFeedback {
				t.Errorf("feedback has %d bytes", len(f.Feedback))
			}
		})
	}
}
