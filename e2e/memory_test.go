package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A process that the memory limit has killed is in the report, even if the agent continued without it.
func TestMemoryLimitIsReported(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the native sandbox is Linux's")
	}
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 1)
	bomb := `RALPH_AGENT_COMMAND=sh -c '(x=$(head -c 400000000 /dev/zero | tr "\\0" x)); echo done >done.txt && git add . && git commit -qm Done && echo "<promise>COMPLETE</promise>"'`
	if got := s.start(t, r, []string{"RALPH_SANDBOX=native", "RALPH_MEMORY_MB=96", bomb}, "work").end(t); got != 0 {
		t.Errorf("status %d", got)
	}
	report, err := os.ReadFile(filepath.Join(string(r), ".ralph", "backlog", keys[0]+".md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "killed at the memory limit of 96 MB"; strings.Count(string(report), want) != 1 {
		t.Errorf("the report does not say %q:\n%s", want, report)
	}
	s.clean(t, r)
}
