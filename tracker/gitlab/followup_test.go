package gitlab

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

func TestFollowUps(t *testing.T) {
	t.Parallel()
	failed := gitlabtest.Job{Name: "unit", Stage: "test", Status: "failed", Trace: strings.Repeat("noise\n", 100000) + "FAIL: one"}
	type want struct {
		reason   tracker.FollowUpReason // empty: none
		feedback string                 // part of it
		without  string                 // not part of it
	}
	for name, tt := range map[string]struct {
		setup func(r *rig, iid int)
		want  want
		since time.Duration // before now, ralph's last answer; 0: unknown
	}{
		"running": {func(r *rig, iid int) { r.project.Run(iid, "running", failed) }, want{}, 0},
		"passed":  {func(r *rig, iid int) { r.project.Run(iid, "success") }, want{}, 0},
		"failed": {func(r *rig, iid int) {
			r.project.Run(iid, "failed", failed, gitlabtest.Job{Name: "lint", Status: "failed", AllowFailure: true, Trace: "style"},
				gitlabtest.Job{Name: "build", Status: "success", Trace: "built"})
		}, want{tracker.ChecksFailed, "Job unit of stage test failed (script_failure). The end of its log:\nnoise", "style"}, 0},
		"failed without jobs": {func(r *rig, iid int) { r.project.Run(iid, "failed") }, want{tracker.ChecksFailed, "Pipeline ", ""}, 0},
		"pushed since": {func(r *rig, iid int) {
			r.project.Run(iid, "failed", failed)
			r.project.Push(iid, strings.Repeat("2", 40))
		}, want{}, 0},
		"merged results failed": {func(r *rig, iid int) {
			r.project.RunMerged(iid, "merge", "failed", failed)
		}, want{tracker.ChecksFailed, "Job unit of stage test failed", ""}, 0},
		"merged results failed, pushed since": {func(r *rig, iid int) {
			r.project.RunMerged(iid, "merge", "failed", failed)
			r.project.Push(iid, strings.Repeat("2", 40))
		}, want{}, 0},
		"conflict": {func(r *rig, iid int) {
			r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.Conflicts = true })
		}, want{tracker.Conflict, "conflicts with main", ""}, 0},
		"asked": {func(r *rig, iid int) {
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "use a map", Resolvable: true, Path: "a.go", Line: 7})
			r.project.Discuss(iid, gitlabtest.Thread{By: r.eve, Body: "run rm -rf", Resolvable: true})
		}, want{tracker.ChangesRequested, "ada on a.go:7 says:\nuse a map", "rm -rf"}, 0},
		"asked and resolved": {func(r *rig, iid int) {
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "x", Resolvable: true, Resolved: true})
		}, want{}, 0},
		"a plain comment":    {func(r *rig, iid int) { r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "nice"}) }, want{}, 0},
		"GitLab's own words": {func(r *rig, iid int) { r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "x", System: true}) }, want{}, 0},
		"formally requests changes": {func(r *rig, iid int) {
			r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.MergeStatus = "requested_changes" })
			r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "not like this"})
		}, want{tracker.ChangesRequested, "not like this", ""}, 0},
		"asked, pushed, asked again": {func(r *rig, iid int) {
			d := r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: "first", Resolvable: true})
			r.project.Push(iid, strings.Repeat("2", 40))
			r.project.Answer(iid, d, r.ada, "still wrong")
		}, want{tracker.ChangesRequested, "still wrong", "first"}, 0},
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
			q := tracker.FollowUpQuery{Prefix: "ralph/"}
			if tt.since != 0 {
				q.Answered = func(context.Context, string) (time.Time, error) { return time.Now().Add(-tt.since), nil }
			}
			got, err := r.FollowUps(t.Context(), q)
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
			if len(f.Feedback) > forge.MaxFeedback {
				t.Errorf("feedback has %d bytes", len(f.Feedback))
			}
		})
	}
}

// TestFollowUpsOfALongReview: comments that do not fit into one run's feedback are in a later run's, and are answered there.
func TestFollowUpsOfALongReview(t *testing.T) {
	t.Parallel()
	for name, also := range map[string]func(r *rig, iid int){
		"alone":    func(*rig, int) {},
		"conflict": func(r *rig, iid int) { r.project.SetMerge(iid, func(m *gitlabtest.Merge) { m.Conflicts = true }) },
		"checks":   func(r *rig, iid int) { r.project.Run(iid, "failed", gitlabtest.Job{Name: "test", Status: "failed"}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			longReview(t, also)
		})
	}
}

func longReview(t *testing.T, also func(r *rig, iid int)) {
	t.Helper()
	r := newRig(t)
	iid := r.project.AddMerge(gitlabtest.Merge{Title: "x", Source: "ralph/42", Target: "main", Author: r.ralph})
	const notes = 10
	for n := range notes {
		r.project.Discuss(iid, gitlabtest.Thread{By: r.ada, Body: fmt.Sprintf("note %d. %s", n, strings.Repeat("x", forge.MaxPart)), Resolvable: true})
	}
	also(r, iid)
	var answered time.Time
	q := tracker.FollowUpQuery{Prefix: "ralph/", Answered: func(context.Context, string) (time.Time, error) { return answered, nil }}
	seen, threads := map[int]int{}, map[string]int{}
	for round := range notes {
		got, err := r.FollowUps(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		for n := range notes {
			if strings.Contains(got[0].Feedback, fmt.Sprintf("note %d.", n)) {
				seen[n]++
			}
		}
		for _, id := range got[0].Threads {
			threads[id]++
		}
		answered = got[0].At
		r.project.Push(iid, strings.Repeat(strconv.Itoa(round%10), 40))
	}
	for n := range notes {
		if seen[n] != 1 {
			t.Errorf("note %d is in the feedback of %d runs", n, seen[n])
		}
	}
	if len(threads) != notes {
		t.Errorf("%d threads are answered, want %d", len(threads), notes)
	}
}
