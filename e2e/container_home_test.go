package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// What setup fetches for the gate on the base is available in every later sandbox of the image: the agent's, and those that
// verify. Where it cannot be shared, each sandbox fetches again, and no gate fails because of that.
func TestHomeOfSetupInContainers(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"docker", "podman"} {
		for name, c := range map[string]struct {
			more    []string
			fetches int
		}{
			"warm": {nil, 1},
			"cold": {[]string{"RALPH_MEMORY_MB=64"}, 6}, // twice on the base, and twice for each issue
		} {
			if !tested(engine == "docker", name == "warm") {
				continue
			}
			t.Run(engine+" "+name, func(t *testing.T) {
				t.Parallel()
				containertest.Require(t, engine)
				s, r := newScene(t, doIt), newRepository(t)
				r.backlog(t, 2)
				counts := s.path("counts")
				if err := os.Mkdir(counts, 0o777); err != nil {
					t.Fatal(err)
				}
				env := engineEnv(append([]string{
					"RALPH_SANDBOX=" + engine, "RALPH_IMAGE=" + os.Getenv("RALPH_TEST_IMAGE"), commitsInside,
					`RALPH_SETUP=test -e ~/tool || { pwd >~/place; echo fetched >>/counts/fetches; head -c 17000000 /dev/zero >~/much; echo tool >~/tool; }`,
					`RALPH_GATE=test "$(cat ~/place)" = "$PWD" && grep tool ~/tool && test ! -e ~/gate && echo x >~/gate`,
				}, c.more...)...)
				args := []string{"work", "--mount", "host=" + counts + ",inside=/counts"}
				if os.Getuid() == 0 { // root owns the worktree, so root must work in it
					args = append(args, "--container-user", "0:0")
				}
				if got := s.start(t, r, env, args...).end(t); got != 0 {
					t.Errorf("status %d", got)
				}
				text, err := os.ReadFile(filepath.Join(counts, "fetches"))
				if n := strings.Count(string(text), "\n"); err != nil || n != c.fetches {
					t.Errorf("setup fetched %d times, %v; want %d", n, err, c.fetches)
				}
				noContainer(t, engine, s.dir)
			})
		}
	}
}
