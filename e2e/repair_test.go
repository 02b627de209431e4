package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRepair has a table of leftovers. Doctor names each one and the command that fixes it, and the command does. Then the
// issue is worked.
func TestRepair(t *testing.T) {
	t.Parallel()
	one := func(t *testing.T, pattern string) string {
		t.Helper()
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		return found[0]
	}
	write := func(t *testing.T, path, text string) string {
		t.Helper()
		then := time.Now().Add(-time.Hour)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const gone = "1111111111111111111111111111111111111111\n"
	for name, c := range map[string]struct {
		leave func(t *testing.T, git, state string) (where string) // creates what a killed ralph leaves
		says  string
		alive bool // its agent is still running
		aside bool // the repair keeps files for a person to look at
	}{
		"processes": {alive: true, says: "processes of a dead ralph", leave: func(*testing.T, string, string) string { return "run " }},
		"lock": {says: "stale ref lock", leave: func(t *testing.T, git, _ string) string {
			return write(t, filepath.Join(git, "refs/ralph/claims/issue-01.lock"), "")
		}},
		"record": {aside: true, says: "unreadable worktree record", leave: func(t *testing.T, _, state string) string {
			return write(t, one(t, filepath.Join(state, "worktrees/*.json")), "{")
		}},
		"lost state": {says: "branch ralph/issue-01 is checked out there", leave: func(t *testing.T, git, state string) string {
			if err := os.RemoveAll(state); err != nil {
				t.Fatal(err)
			}
			return one(t, filepath.Join(git, "worktrees/issue-01-*"))
		}},
		"temporary files": {says: "temporary files of an ended ralph process", leave: func(t *testing.T, _, state string) string {
			dir := one(t, filepath.Join(state, "tmp/*/*"))
			write(t, filepath.Join(dir, "record-1"), "x")
			return dir
		}},
		"claim": {says: "is missing", leave: func(t *testing.T, git, _ string) string {
			write(t, filepath.Join(git, "refs/ralph/claims/issue-01"), gone)
			return "refs/ralph/claims/issue-01"
		}},
		"ref": {says: "is missing", leave: func(t *testing.T, git, _ string) string {
			write(t, filepath.Join(git, "refs/ralph/wip/issue-01"), gone)
			return "refs/ralph/wip/issue-01"
		}},
		"empty ref": {says: "does not contain the name of a commit", leave: func(t *testing.T, git, _ string) string {
			return write(t, filepath.Join(git, "refs/ralph/old"), "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newScene(t, strings.ReplaceAll(`
issues:
  "*":
    - - ignore_term: true
      - touch: DIR/started
      - hang: true
    - - write: {path: two.txt, text: two}
      - commit: Two
      - say: <promise>COMPLETE</promise>
`, "DIR", dir))
			r := newRepository(t)
			r.backlog(t, 1)
			env := []string{"RALPH_AGENT_COMMAND=scripted-agent --script '" + s.path("agent.yaml") + "' --log '" + s.path("starts") + "' --by start"}
			p := s.start(t, r, env, "work")
			awaitFile(t, filepath.Join(dir, "started"))
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.end(t)
			if !c.alive {
				for _, left := range processesWith(t, s.mark) {
					_ = syscall.Kill(left.pid, syscall.SIGKILL)
				}
				await(t, "the end of the agent", func() bool { return len(processesWith(t, s.mark)) == 0 })
			}
			where := c.leave(t, filepath.Join(string(r), ".git"), one(t, s.path("state/ralph/*")))
			said := func(args ...string) string {
				p := s.start(t, r, env, args...)
				p.end(t)
				return p.out.String()
			}
			out := said("doctor")
			_, found, _ := strings.Cut(out, "leftovers")
			line, rest, _ := strings.Cut(found, "\n")
			fix, _, _ := strings.Cut(rest, "\n")
			if strings.Count(out, "leftovers") != 1 || !strings.Contains(line, where) || !strings.Contains(line, c.says) || !strings.HasSuffix(fix, " ralph clean --repair") {
				t.Fatalf("doctor says %q and %q of %s", line, fix, where)
			}
			if got := said("clean", "--repair", "--dry-run"); !strings.Contains(got, "would remove") {
				t.Errorf("a dry run says %s", got)
			}
			if got := s.start(t, r, env, "clean", "--repair").end(t); got != 0 {
				t.Errorf("the repair ends with status %d", got)
			}
			after := "leftovers     none"
			if c.aside {
				after = "leftovers     1 worktree moved aside"
			}
			if got := said("doctor"); !strings.Contains(got, after) || strings.Count(got, "leftovers") != 1 {
				t.Errorf("doctor says %s", got)
			}
			if got := said("clean", "--repair"); got != "Nothing to repair.\n" {
				t.Errorf("a second repair says %s", got)
			}
			if got := s.start(t, r, env, "work").end(t); got != 0 {
				t.Errorf("the next sweep ends with status %d", got)
			}
			if got := r.commits(t, "ralph/issue-01"); got != 1 {
				t.Errorf("%d commits", got)
			}
			s.clean(t, r)
		})
	}
}
