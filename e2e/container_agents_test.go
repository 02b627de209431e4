package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
)

// The real agents work a backlog in containers of a real engine like in the native sandbox: with a placeholder instead of a key,
// no network except ralph's proxy, and a private repository. The gate searches every file and process that it can see for the key.
func TestRealAgentsInContainers(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			containertest.Require(t, engine)
			for agent, tt := range map[string]struct{ service, key, program, model string }{
				"claude-code": {"", "ANTHROPIC_API_KEY", "claude", "sonnet"},
				"codex":       {"/v1", "OPENAI_API_KEY", "codex", "gpt-5.5"},
			} {
				if !tested(engine == "docker", agent == "claude-code") {
					continue
				}
				t.Run(agent, func(t *testing.T) {
					t.Parallel()
					s, r := newScene(t, doIt), newRepository(t)
					r.write(t, ".ralph/backlog/greet.md", "---\ntitle: Greet\nlabels: [no-human]\n---\nWrite hello.txt.\n")
					r.write(t, "look.sh", lookForSecrets+lookInImage)
					r.write(t, "control.sh", findAPlanted)
					r.commit(t, "a backlog")
					program := nativeProgram(t, tt.program)
					work := []string{
						"work", "--agent", agent, "--model", tt.model, "--agent-upstream", startModel(t) + tt.service,
						"--sandbox", engine, "--image", os.Getenv("RALPH_TEST_IMAGE"), "--max-iterations", "2",
						"--mount", "host=" + filepath.Dir(program) + ",readonly",
						"--agent-env", "PATH=" + filepath.Dir(program) + ":/usr/bin:/bin",
						"--gate", "test -f hello.txt", "--gate", "sh control.sh", "--gate", "sh look.sh",
					}
					if os.Getuid() == 0 { // root owns the worktree, so root must work in it
						work = append(work, "--container-user", "0:0")
					}
					if got := s.start(t, r, engineEnv(tt.key+"="+secret, "RALPH_AGENT_COMMAND="), work...).end(t); got != 0 {
						t.Fatalf("status %d", got)
					}
					if n := r.commits(t, "ralph/greet"); n != 1 {
						t.Errorf("%d commits", n)
					}
					report, err := os.ReadFile(filepath.Join(string(r), ".ralph/backlog/greet.md"))
					if err != nil {
						t.Fatal(err)
					}
					if strings.Contains(string(report), secret) || !strings.Contains(string(report), "sandbox: "+engine) {
						t.Errorf("report:\n%s", report)
					}
					noContainer(t, engine, s.dir)
					s.clean(t, r)
				})
			}
		})
	}
}

// engineEnv returns the variables that the engines' clients need from the test's environment, and more.
func engineEnv(more ...string) []string {
	for _, name := range []string{"DOCKER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "XDG_RUNTIME_DIR"} {
		if value, ok := os.LookupEnv(name); ok {
			more = append(more, name+"="+value)
		}
	}
	return more
}

// nativeProgram returns the path of a real agent's native program. The images have no node for the script that normally starts it.
func nativeProgram(t *testing.T, name string) string {
	t.Helper()
	start := agentProgram(t, name) // skips the test, or says what to install
	modules := filepath.Dir(filepath.Dir(start))
	pattern := map[string]string{
		"claude": "@anthropic-ai/claude-code-linux-*/claude",
		"codex":  "@openai/codex-linux-*/vendor/*/bin/codex",
	}[name]
	found, err := filepath.Glob(filepath.Join(modules, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("the program of %s: %q, %v, want one like %s", name, found, err, pattern)
	}
	return found[0]
}

// noContainer fails the test if a container is left that mounts something of the folder.
func noContainer(t *testing.T, engine, dir string) {
	t.Helper()
	out, err := exec.Command(engine, "ps", "--all", "--no-trunc", "--filter", "label=ralph.run", "--format", "{{.Names}} {{.Mounts}}").CombinedOutput()
	if err != nil {
		t.Fatalf("%s ps: %v\n%s", engine, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, dir) {
			t.Errorf("a container is left: %s", line)
		}
	}
}

// lookInImage extends lookForSecrets to every file in the container's own root, except ralph's own program: it is this test
// binary, which contains the key.
const lookInImage = `if find / -xdev -path /.ralph -prune -o -type f -exec grep -lF "$key" {} + 2>/dev/null | grep .; then exit 1; fi
`

// findAPlanted proves that the search works: tools in an image differ from the host's, and a sandbox shows fewer files.
const findAPlanted = `planted=a-planted-secret
tmp=${TMPDIR:-/tmp}
printf %s "$planted" >"$tmp/planted"
grep -rIlF "$planted" "$tmp" /etc >"$tmp/found" 2>/dev/null
grep -q planted "$tmp/found" || exit 1
rm "$tmp/planted" "$tmp/found"
PLANTED=$planted sh -c 'for f in /proc/[0-9]*/environ; do
  if tr "\0" "\n" <"$f" 2>/dev/null | grep -qF "PLANTED=a-planted"; then exit 0; fi
done; exit 1'
`
