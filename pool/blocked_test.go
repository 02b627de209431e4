package pool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// TestManyBlockers: an issue that many others block is skipped with a short reason.
func TestManyBlockers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	var many []string
	for n := range 21 {
		key := fmt.Sprintf("b%02d", n)
		many = append(many, key)
		f.issue(key, "labels: [other]")
	}
	f.issue("few", "blocked_by: ["+strings.Join(many[:20], ", ")+"]")
	f.issue("lots", "blocked_by: ["+strings.Join(many, ", ")+"]")
	plan, err := f.pool().Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	why := map[string]string{}
	for _, s := range plan.Skipped {
		why[s.Issue.Key] = report.Skip(s.Skip)
	}
	if want := "blocked by " + strings.Join(many[:20], ", "); why["few"] != want {
		t.Errorf("few: %q, want %q", why["few"], want)
	}
	if want := "blocked by more than 20 issues"; why["lots"] != want {
		t.Errorf("lots: %q, want %q", why["lots"], want)
	}
	q := tracker.Query{Unworked: []string{"Needs-Human"}}
	if !q.NeedsBlockers([]string{"no-human"}) || q.NeedsBlockers([]string{"x", "needs-human"}) {
		t.Error("labels of issues that are not worked")
	}
}
