package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// Setup runs once for all issues: its files in the worktree and the home are in every later sandbox, unchanged, until one of
// its inputs changes. If its inputs are unknown, it runs each time.
func TestSetupRunsOnce(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []string{"native", "docker", "podman"} {
		for name, c := range map[string]struct {
			more  []string
			files int // additional files
			runs  int
		}{
			"once":       {[]string{"RALPH_SETUP_INPUTS=lock"}, 0, 1},
			"each time":  {nil, 0, 5}, // on the base, and twice for each issue
			"no layers":  {[]string{"RALPH_SETUP_INPUTS=lock", "RALPH_LAYER_MAX_MB=0"}, 0, 5},
			"large base": {[]string{"RALPH_SETUP_INPUTS=lock"}, 2001, 1},
		} {
			if !everything() && (sandbox == "docker" && (c.files > 0 || name == "no layers") || sandbox == "podman" && name != "once") {
				continue
			}
			t.Run(sandbox+" "+name, func(t *testing.T) {
				t.Parallel()
				s, r := newScene(t, doIt), newRepository(t)
				env := []string{"RALPH_SANDBOX=" + sandbox}
				if sandbox == "native" {
					if isolating() == nil {
						t.Skip("no isolating sandbox")
					}
				} else {
					containertest.Require(t, sandbox)
					env = engineEnv("RALPH_SANDBOX="+sandbox, "RALPH_IMAGE="+os.Getenv("RALPH_TEST_IMAGE"))
				}
				r.write(t, ".gitignore", "/deps/\nsub/out\n")
				r.write(t, "lock", "one\n")
				r.write(t, "sub/source", "text\n")
				for i := range c.files {
					r.write(t, fmt.Sprintf("many/%d", i), "")
				}
				r.commit(t, "dependencies")
				r.backlog(t, 2)
				counts := s.path("counts")
				if err := os.Mkdir(counts, 0o777); err != nil {
					t.Fatal(err)
				}
				env = append(env, append([]string{
					commitsInside,
					`RALPH_SETUP=echo run >>/counts/runs; mkdir -p deps/bin && printf '#!/bin/sh\necho tool\n' >deps/bin/tool && chmod +x deps/bin/tool && ` +
						`ln -s bin/tool deps/link && mkdir deps/closed && echo x >deps/closed/file && chmod 500 deps/closed && echo built >sub/out && echo home >~/fetched`,
					// Changes by one gate are not visible to the next.
					`RALPH_GATE=test "$(deps/link)" = tool && grep built sub/out && grep home ~/fetched && test -z "$(git status --porcelain)" && ` +
						`test ! -e deps/gate && echo x >deps/gate && rm -r deps/bin && echo broken >sub/out`,
				}, c.more...)...)
				args := []string{"work", "--mount", "host=" + counts + ",inside=/counts"}
				if os.Getuid() == 0 && sandbox != "native" { // root owns the worktree, so root must work in it
					args = append(args, "--container-user", "0:0")
				}
				work := s.start(t, r, env, args...)
				if got := work.end(t); got != 0 {
					t.Errorf("status %d", got)
				}
				text, err := os.ReadFile(filepath.Join(counts, "runs"))
				if n := strings.Count(string(text), "\n"); err != nil || n != c.runs {
					t.Errorf("setup ran %d times, %v; want %d", n, err, c.runs)
				}
			})
		}
	}
}
