package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// An issue is worked in a container with its worktree at another path and its own network. The report warns that this is weaker.
func TestContainerKeys(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			containertest.Require(t, engine)
			s, r := newScene(t, doIt), newRepository(t)
			keys := r.backlog(t, 1)
			agent := `RALPH_AGENT_COMMAND=sh -c 'pwd >where && id -G | tr " " "\n" | grep -x 54321 >>where && git add where && git commit -qm Where && ` +
				`echo "<promise>COMPLETE</promise>"'`
			work := []string{
				"work", "--sandbox", engine, "--image", os.Getenv("RALPH_TEST_IMAGE"), "--max-iterations", "1", "--container-workdir", "/workspace",
				"--container-group", "54321", "--container-device", "/dev/null:/dev/extra", "--gate", "test -e /dev/extra && test -f /workspace/where",
			}
			if os.Getuid() == 0 { // root owns the worktree, so root must work in it
				work = append(work, "--container-user", "0:0")
			}
			if got := s.start(t, r, engineEnv(agent), work...).end(t); got != 0 {
				t.Fatalf("status %d", got)
			}
			if got := strings.Join(r.lines(t, "show", "ralph/"+keys[0]+":where"), " "); got != "/workspace 54321" {
				t.Errorf("the agent worked in %q", got)
			}
			report, err := os.ReadFile(filepath.Join(string(r), ".ralph/backlog", keys[0]+".md"))
			want := "weaker than others: it has devices of the host (/dev/null:/dev/extra); commands are in additional groups (54321)"
			if err != nil || !strings.Contains(string(report), want) {
				t.Errorf("%v, the report does not say %q:\n%s", err, want, report)
			}
			noContainer(t, engine, s.dir)
			s.clean(t, r)
		})
	}
}
