package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// ralph is killed in one clone. Another clone on the same host takes over its issue only after it has ended the agent of the
// dead run: two agents never work one issue.
func TestTakeOverByAnotherClone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newScene(t, strings.ReplaceAll(`
issues:
  "*":
    - - ignore_term: true
      - orphan: true
      - run: echo $PPID >DIR/pid
      - touch: DIR/started
      - hang: true
    - - run: 'p=$(cat DIR/pid); if test -d /proc/1; then ! grep -qs "^State:[[:space:]]*[^XZ[:space:]]" /proc/$p/status; else ! kill -0 $p; fi'
      - write: {path: two.txt, text: more}
      - commit: Two
      - say: <promise>COMPLETE</promise>
`, "DIR", dir))
	r := newRepository(t)
	keys := r.backlog(t, 1)
	remote := newRemote(t, r)
	a, b := remote.clone(t), remote.clone(t)
	byStart := "RALPH_AGENT_COMMAND=scripted-agent --script '" + s.path("agent.yaml") + "' --log '" + s.path("starts") + "' --by start"
	p := s.start(t, a, []string{byStart}, "work")
	awaitFile(t, filepath.Join(dir, "started"))
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.end(t)
	if len(processesWith(t, s.mark)) == 0 {
		t.Fatal("the agent went with ralph: there is nothing to end")
	}
	if got := s.start(t, b, []string{byStart}, "work").end(t); got != 0 {
		t.Errorf("the other clone's sweep ends with status %d", got)
	}
	if n := s.starts(t)[keys[0]]; n != 2 {
		t.Errorf("the agent was started %d times, want once in each clone", n)
	}
	if got := remote.commits(t, "ralph/"+keys[0]); got != 1 {
		t.Errorf("%d commits are published", got)
	}
	if got := s.start(t, a, []string{byStart}, "work").end(t); got != 0 {
		t.Errorf("the next sweep of the first clone ends with status %d", got)
	}
	s.clean(t, a, b, remote)
}
