package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/clitest"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/pool/journal"
)

// With many issues the status lists open runs, runs for a person to look at, and failures, and counts the rest.
func TestStatusOfManyIssues(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\n---\n")
	m.commit(t)
	state := filepath.Join(m.root, "state")
	status := func(args ...string) string {
		t.Helper()
		got := m.run(t, nil, append([]string{"status", "--state-dir=" + state}, args...)...)
		if got.status != exit.OK {
			t.Errorf("%+v", got)
		}
		return got.stdout
	}
	status()
	store, _ := journalIn(t, state, "*")
	began := time.Now().Add(-time.Hour)
	save := func(key string, v journal.Verdict, ended bool) {
		t.Helper()
		m.write(t, ".ralph/backlog/"+key+".md", "---\ntitle: "+key+"\n---\n")
		r := clitest.CostRun(key, 1, agents.Usage{})
		began = began.Add(time.Second)
		r.Started, r.Ended, r.Verdict = began, began, v
		if !ended {
			r.Ended = time.Time{}
		}
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	save("left", journal.Verdict{}, false)
	save("asks", journal.Verdict{Outcome: journal.NeedsInfo, Final: true}, true)
	save("nothing", journal.Verdict{Outcome: journal.NoChange, Final: true}, true)
	save("again", journal.Verdict{Outcome: journal.GateFailed}, true)
	for i := range 5 {
		save(fmt.Sprint("review", i), journal.Verdict{Outcome: journal.Succeeded, Final: true}, true)
	}
	for i := range 30 {
		save(fmt.Sprint("done", i), journal.Verdict{Outcome: journal.Superseded, Final: true}, true)
	}
	lines := strings.Split(status(), "\n")
	for i, want := range []string{"ISSUE ", "left ", "nothing ", "asks ", "again ", "review4 ", "review3 ", "review2 ", "review1 ", "review0 ", "done29 "} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, not %q", i, lines[i], want)
		}
	}
	if got := strings.Join(lines, "\n"); !strings.Contains(got, "\n19 more: 19 superseded (`ralph status --all` lists them).\n") || strings.Contains(got, "done18 ") {
		t.Errorf("%s", got)
	}
	for i, key := range []string{"nothing", "again", "review0"} { // closed by a person, by ralph, or gone
		if i < 2 {
			m.write(t, ".ralph/backlog/"+key+".md", "---\ntitle: x\nstate: closed\n---\n")
		} else if err := os.Remove(filepath.Join(m.repo, ".ralph/backlog", key+".md")); err != nil {
			t.Fatal(err)
		}
	}
	if got := status("--all"); !strings.Contains(got, "\nasks ") || strings.Index(got, "\nnothing ") < strings.Index(got, "\nreview1 ") || strings.Count(got, " closed ") != 3 {
		t.Errorf("%s", got)
	}
	if got := status("--json"); strings.Count(got, `"state": "closed"`) != 3 {
		t.Errorf("%s", got)
	}
	if got := status("--all"); strings.Count(got, "superseded") != 30 || strings.Contains(got, "more:") {
		t.Errorf("%s", got)
	}
	if got := status("--json"); strings.Count(got, `"state": "superseded"`) != 30 {
		t.Errorf("%s", got)
	}
}
