package github_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// finish makes the writes of a run's end.
func finish(ctx context.Context, g interface {
	tracker.Tracker
	tracker.Requester
}) error {
	if err := g.Report(ctx, "1", tracker.Report{Run: "run-1", Body: "Working."}); err != nil {
		return err
	}
	_, err := g.OpenRequest(ctx, tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "Fix it", Body: "Closes #1",
		Labels: []string{"ralph"}, Reviewers: []string{"ada"}, Assignees: []string{"ada"}})
	if err != nil {
		return err
	}
	if err := g.Change(ctx, "1", tracker.Change{AddLabels: []string{"in review"}, RemoveLabels: []string{"no-human"}}); err != nil {
		return err
	}
	return g.Report(ctx, "1", tracker.Report{Run: "run-1", Body: "Done."})
}

// TestFaultAtEveryCall makes each request of a run's end fail in each way, one at a time. The caller retries, as the pool
// does; afterwards every write has happened exactly once.
func TestFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	for name, fault := range githubtest.Faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := 0; ; at++ {
				if !survives(t, fmt.Sprintf("%s at call %d", name, at), fault, at) {
					break
				}
			}
		})
	}
}

// survives reports whether the fault happened; if not, there are no more calls.
func survives(t *testing.T, what string, fault githubtest.Fault, at int) bool {
	t.Helper()
	s := githubtest.New(t)
	s.AddIssue(githubtest.Issue{Title: "It is broken", Labels: []string{"no-human"}})
	g := open(t, configOf(s))
	happened := false
	s.Inject(func(n int, _ *http.Request) *githubtest.Fault {
		if n != at {
			return nil
		}
		happened = true
		return &fault
	})
	tries := 0
	for ; tries < 4; tries++ {
		if err := finish(t.Context(), g); err == nil {
			break
		} else if tries == 3 {
			t.Errorf("%s: still fails at the fourth try: %v", what, err)
		}
	}
	i := s.Issue(1)
	if diff := cmp.Diff([]string{"in review"}, i.Labels); diff != "" {
		t.Errorf("%s: labels (-want +got):\n%s", what, diff)
	}
	if len(i.Comments) != 1 || !strings.HasSuffix(i.Comments[0].Body, "\nDone.") {
		t.Errorf("%s: %d comments", what, len(i.Comments))
	}
	pulls := s.Pulls()
	if len(pulls) != 1 {
		t.Fatalf("%s: pull requests %v, want one", what, pulls)
	}
	p := s.Issue(pulls[0])
	if diff := cmp.Diff([][]string{{"ralph"}, {"ada"}, {"ada"}}, [][]string{p.Labels, p.Assignees, p.Pull.Reviewers}); diff != "" {
		t.Errorf("%s: pull request's labels, assignees, reviewers (-want +got):\n%s", what, diff)
	}
	return happened
}

// TestSecondReportHealed: two comments of one run, left by a lost answer, are merged.
func TestSecondReportHealed(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.AddIssue(githubtest.Issue{Title: "One"})
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "Working."}); err != nil {
		t.Fatal(err)
	}
	s.AddComment(1, githubtest.Bot, s.Issue(1).Comments[0].Body)
	if err := g.Report(t.Context(), "1", tracker.Report{Run: "r", Body: "Done."}); err != nil {
		t.Fatal(err)
	}
	c := s.Issue(1).Comments
	if len(c) != 1 || !strings.HasSuffix(c[0].Body, "\nDone.") {
		t.Errorf("comments: %d, the first %q", len(c), c[0].Body)
	}
}
