package gitlab

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// GitLab merges a request once its pipeline has passed, through a merge train if the project has one. A request without a
// pipeline, which GitLab would merge at once, is refused.
func TestMergeLater(t *testing.T) {
	t.Parallel()
	run := func(status string) func(*rig, int) { return func(r *rig, iid int) { r.project.Run(iid, status) } }
	edit := func(change func(*gitlabtest.Merge)) func(*rig, int) {
		return func(r *rig, iid int) {
			r.project.Run(iid, "running")
			r.project.SetMerge(iid, change)
		}
	}
	for name, c := range map[string]struct {
		setup  func(r *rig, iid int)
		says   string
		merged bool // at once, because the pipeline has passed already
		train  bool
	}{
		"pipeline runs": {setup: run("running")},
		"has passed":    {setup: run("success"), merged: true},
		"a train": {setup: func(r *rig, iid int) {
			r.project.Trains = true
			r.project.Run(iid, "pending")
		}, train: true},
		"merged results run":    {setup: func(r *rig, iid int) { r.project.RunMerged(iid, "merge", "running") }},
		"merged results passed": {setup: func(r *rig, iid int) { r.project.RunMerged(iid, "merge", "success") }, merged: true},
		"merged results failed": {setup: func(r *rig, iid int) { r.project.RunMerged(iid, "train", "failed") }, says: "its pipeline is failed"},
		"another commit's":      {setup: func(r *rig, iid int) { r.project.RunMerged(iid, "head", "running") }, says: "no pipeline of its commit"},
		"merged results on a train": {setup: func(r *rig, iid int) {
			r.project.Trains = true
			r.project.RunMerged(iid, "merge", "running")
		}, train: true},
		"no pipeline": {setup: func(*rig, int) {}, says: "no pipeline of its commit to wait for"},
		"has failed":  {setup: run("failed"), says: "its pipeline is failed"},
		"a draft":     {setup: edit(func(m *gitlabtest.Merge) { m.Title = "Draft: x" }), says: "a draft"},
		"a review":    {setup: edit(func(m *gitlabtest.Merge) { m.MergeStatus = "requested_changes" }), says: "requests changes"},
		"a discussion": {setup: func(r *rig, iid int) {
			r.project.Run(iid, "running")
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "use a map", Resolvable: true})
		}, says: "not resolved"},
		"pushed since": {setup: func(r *rig, iid int) {
			r.project.Run(iid, "running")
			r.project.Push(iid, strings.Repeat("2", 40))
		}, says: "not the commit that was checked"},
		"may not": {setup: func(r *rig, iid int) {
			r.project.Run(iid, "running")
			r.project.NoMerge = true
		}, says: "has to be allowed to merge into main"},
		"a conflict":   {setup: edit(func(m *gitlabtest.Merge) { m.Conflicts = true }), says: "Branch cannot be merged"},
		"somebody's":   {setup: edit(func(m *gitlabtest.Merge) { m.Author = &gitlabtest.User{ID: 99} }), says: "no open request"},
		"closed":       {setup: edit(func(m *gitlabtest.Merge) { m.State = "closed" }), says: "no open request"},
		"other source": {setup: edit(func(m *gitlabtest.Merge) { m.Source = "ralph/8" }), says: "no open request"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/7", Target: "main", Author: r.ralph})
			commit := r.project.Merges()[0].SHA
			c.setup(r, iid)
			why, err := r.MergeLater(t.Context(), "ralph/7", commit)
			if err != nil || (why == "") != (c.says == "") || !strings.Contains(why, c.says) || strings.Contains(why, "\n") {
				t.Fatalf("%q, %v", why, err)
			}
			m := r.project.Merges()[0]
			if later := c.says == "" && !c.merged; m.AutoMerge != later || m.Train != c.train || (m.State == "merged") != c.merged {
				t.Errorf("%+v", m)
			}
			if c.says == "" && !c.merged {
				if why, err := r.MergeLater(t.Context(), "ralph/7", commit); why != "" || err != nil {
					t.Errorf("again: %q, %v", why, err)
				}
			}
			if err := r.KeepOpen(t.Context(), "ralph/7"); err != nil || r.project.Merges()[0].AutoMerge {
				t.Errorf("not taken back: %v", err)
			}
		})
	}
}

// A scheduled merge is cancelled once somebody requests changes.
func TestMergeLaterIsTakenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/7", Target: "main", Author: r.ralph})
	r.project.Run(iid, "running")
	commit := r.project.Merges()[0].SHA
	if why, err := r.MergeLater(t.Context(), "ralph/7", commit); why != "" || err != nil {
		t.Fatalf("%q, %v", why, err)
	}
	r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.MergeStatus = "requested_changes" })
	if why, err := r.MergeLater(t.Context(), "ralph/7", commit); why == "" || err != nil || r.project.Merges()[0].AutoMerge {
		t.Errorf("%q, %v", why, err)
	}
}

// A pipeline of merged results from before the last push proves nothing about the pushed commits.
func TestMergeLaterAfterAPush(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"merge", "train"} {
		r := newRig(t)
		iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/7", Target: "main", Author: r.ralph})
		r.project.RunMerged(iid, of, "success")
		r.project.Push(iid, strings.Repeat("2", 40))
		why, err := r.MergeLater(t.Context(), "ralph/7", strings.Repeat("2", 40))
		if err != nil || !strings.Contains(why, "no pipeline of its commit to wait for") || r.project.Merges()[0].State != "opened" {
			t.Errorf("%s: %q, %v", of, why, err)
		}
	}
}
