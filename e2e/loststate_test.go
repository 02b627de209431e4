package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The state folder is removed, or replaced by an empty one, while ralph and its agents work. Then ralph continues, or is
// killed. The next sweeps do the work, and git still works for the user.
func TestLostState(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"goes on": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newScene(t, strings.ReplaceAll(`
issues:
  "*":
    - - write: {path: one.txt, text: one}
      - commit: One
      - touch: DIR/{{key}}
      - wait: DIR/go
      - say: <promise>COMPLETE</promise>
    - - write: {path: two.txt, text: two}
      - commit: Two
      - say: <promise>COMPLETE</promise>
`, "DIR", dir))
			r := newRepository(t)
			keys := r.backlog(t, 2)
			env := []string{
				"RALPH_AGENT_COMMAND=scripted-agent --script '" + s.path("agent.yaml") + "' --log '" + s.path("starts") + "' --by start",
				"RALPH_RETRY_BACKOFF=0s",
			}
			p := s.start(t, r, env, "work", "--parallel", "2")
			for _, key := range keys {
				awaitFile(t, filepath.Join(dir, key))
			}
			if err := os.Rename(s.path("state"), filepath.Join(dir, "lost")); err != nil {
				t.Fatal(err)
			}
			if kill {
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.end(t)
			for range 2 {
				s.start(t, r, env, "work").end(t)
			}
			for _, key := range keys {
				if got := r.lines(t, "log", "--format=%s", "main..ralph/"+key); got[len(got)-1] != "One" {
					t.Errorf("%s: commits %q", key, got)
				}
				if n := s.reports(t, r, key); n != 1 {
					t.Errorf("%s has %d reports", key, n)
				}
			}
			if held := r.lines(t, "grep", "--no-index", "-l", "in-review", "--", ".ralph/backlog"); len(held) != len(keys) {
				t.Errorf("in review: %q", held)
			}
			r.git(t, "log", "--all")
			s.clean(t, r)
		})
	}
}
