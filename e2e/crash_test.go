package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// ralph is killed at each stage in the journal. The next sweep finishes the work and repeats none of it.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, step := range journal.Stages() {
		if step == journal.StageClaim || step == journal.StageEnd {
			continue // no event announces these stages
		}
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			keys := r.backlog(t, 2)
			remote := newRemote(t, r)
			var with []string
			if step == journal.StageBaseline {
				with = []string{"--gate", "true"}
			}
			p := s.start(t, r, []string{"RALPH_TEST_CRASH_AT=" + string(step)}, append([]string{"work", "--parallel", "1"}, with...)...)
			if got := p.end(t); got != -int(syscall.SIGKILL) {
				t.Fatalf("ralph was to kill itself at stage %s, and ended with %d", step, got)
			}
			s.sweep(t, r, 0, "--parallel", "1")
			s.worked(t, keys, remote)
			for _, key := range keys {
				if n := s.reports(t, r, key); n != 1 {
					t.Errorf("%s has %d reports", key, n)
				}
			}
			s.clean(t, r)
			s.sweep(t, r, 0) // nothing is left to do
			s.worked(t, keys, remote)
		})
	}
}

// reports counts the reports on the issue.
func (s scene) reports(t *testing.T, r repository, key string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(string(r), ".ralph", "backlog", key+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "<!-- ralph:report ")
}

// ralph is killed while an agent works that has committed, has further edits, ignores SIGTERM and has a process in another
// session. The next sweep ends both processes, loses nothing and continues.
func TestKilledWhileAgentsWork(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		t.Run("remote="+strconv.FormatBool(remote), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newScene(t, strings.ReplaceAll(`
issues:
  "*":
    - - ignore_term: true
      - orphan: true
      - write: {path: one.txt, text: one}
      - commit: One
      - write: {path: two.txt, text: two}
      - touch: DIR/{{key}}
      - hang: true
    - - run: test -f one.txt
      - write: {path: two.txt, text: more}
      - commit: Two
      - say: <promise>COMPLETE</promise>
`, "DIR", dir))
			r := newRepository(t)
			keys := r.backlog(t, 3)
			if remote {
				newRemote(t, r)
			}
			byStart := "RALPH_AGENT_COMMAND=scripted-agent --script '" + s.path("agent.yaml") + "' --log '" + s.path("starts") + "' --by start"
			p := s.start(t, r, []string{byStart}, "work", "--parallel", "3")
			for _, key := range keys {
				awaitFile(t, filepath.Join(dir, key))
			}
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.end(t)
			if len(processesWith(t, s.mark)) == 0 {
				t.Fatal("the agents went with ralph: there is nothing to clean up")
			}
			if got := s.start(t, r, []string{byStart}, "work").end(t); got != 0 {
				t.Errorf("the next sweep ends with status %d", got)
			}
			for _, key := range keys {
				if got := r.lines(t, "log", "--reverse", "--format=%s", "main..ralph/"+key); strings.Join(got, ",") != "One,Two" {
					t.Errorf("%s: commits %q, want One and Two", key, got)
				}
			}
			s.clean(t, r)
		})
	}
}
