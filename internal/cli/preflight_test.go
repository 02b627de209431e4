package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// engineScript is a fake docker. The engine itself works, but `run` fails.
const engineScript = `case $1 in
info) echo '{"MemoryLimit":true,"PidsLimit":true,"CpuCfsQuota":true}' ;;
image) echo '[{"Id":"sha256:1","Config":{"User":"'$IMAGE_USER'"}}]' ;;
run) echo "docker: Error response from daemon: unknown or invalid runtime name: nosuch" >&2; exit 125 ;;
esac
`

// TestSandboxThatDoesNotOpen checks that doctor reports an engine that answers but cannot open a sandbox, and that a sweep
// then ends before it touches an issue.
func TestSandboxThatDoesNotOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		user string // of the image
		want string
	}{
		"runtime": {
			[]string{"--container-user=0:0", "--container-runtime=nosuch"}, "",
			"docker: docker run: docker: Error response from daemon: unknown or invalid runtime name: nosuch; " +
				"name a runtime of the engine with --container-runtime, or remove that flag",
		},
		"user by name": {[]string{"--container-user=agent"}, "", `docker: configure docker: user "agent" is not UID:GID, in numbers; name the user that runs commands: --container-user 1000:1000`},
		"network":      {[]string{"--container-network=host"}, "", `network "host" would join a network that is not the sandbox's own`},
		"userns":       {[]string{"--container-userns=container:db"}, "", `user namespace "container:db" would join a user namespace that is not the sandbox's own`},
		"mount":        {[]string{"--container-user=0:0", "--mount=host=/,inside=/.ralph/ralph"}, "", "/.ralph/ralph inside is reserved for ralph"},
		"whose user":   {nil, "4321:4321", "--container-user "}, // 0:0 for root, the image's user for others
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			const issue = "---\ntitle: One\nlabels: [no-human]\n---\n"
			m.write(t, ".ralph/backlog/one.md", issue)
			m.commit(t)
			bin := m.program(t, "docker", engineScript)
			args := append([]string{"--sandbox=docker", "--image=ralph:x", "--agent-command=true", "--remote=none"}, c.args...)
			change := func(h *compose.Host) {
				h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "IMAGE_USER=" + c.user}
			}
			doctor := m.run(t, change, append([]string{"doctor"}, args...)...)
			if doctor.status != exit.Failed || !strings.Contains(doctor.stdout, "fail  sandbox       docker: ") || !strings.Contains(doctor.stdout, c.want) {
				t.Errorf("doctor: %+v", doctor)
			}
			work := m.run(t, change, append([]string{"work"}, args...)...)
			if work.status != exit.Usage && work.status != exit.Parked || !strings.Contains(work.stderr, "sandbox docker: ") {
				t.Errorf("work: %+v", work)
			}
			for part := range strings.SplitSeq(c.want, "; ") { // the fix may be on another line
				if !strings.Contains(work.stderr, part) {
					t.Errorf("work does not say %q: %+v", part, work)
				}
			}
			if text, err := os.ReadFile(filepath.Join(m.repo, ".ralph/backlog/one.md")); err != nil || string(text) != issue {
				t.Errorf("the issue is told: %s, %v", text, err)
			}
			if left, _ := filepath.Glob(filepath.Join(m.home, ".local", "state", "ralph", "*", "preflight", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestContainerKeys checks that each container key reaches the engine, and that keys that weaken the isolation are reported.
func TestContainerKeys(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	record := filepath.Join(m.root, "argv")
	script := strings.Replace(engineScript, "run)", "run) printf '%s ' \"$@\" >"+record+";", 1)
	bin := m.program(t, "docker", script)
	keys := []string{
		"--container-user=1:1", "--container-network=backend", "--container-userns=host", "--container-selinux=disable", "--container-group=kvm",
		"--container-device=/dev/kvm", "--container-workdir=/workspace", "--container-keep", "--container-arg=--cpuset-cpus=0",
	}
	change := func(h *compose.Host) { h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH")} }
	exec := m.run(t, change, append(append([]string{"sandbox", "exec", "--sandbox=docker", "--image=ralph:x", "--agent-command=true"}, keys...), "--", "true")...)
	argv, err := os.ReadFile(record)
	if err != nil {
		t.Fatalf("%v; %+v", err, exec)
	}
	for _, want := range []string{
		"--user 1:1", "--network backend", "--userns host", "--security-opt label=disable", "--group-add kvm", "--device /dev/kvm",
		"--workdir /workspace", ",dst=/workspace", "--cpuset-cpus=0 ralph:x",
	} {
		if !strings.Contains(string(argv), want+" ") {
			t.Errorf("the engine does not get %s: %s", want, argv)
		}
	}
	check := m.run(t, change, append([]string{"sandbox", "check", "--sandbox=docker", "--image=ralph:x", "--agent-command=true"}, keys...)...)
	want := "docker isolates less than the others:\n  - the network backend has no allow-list\n  - user ids inside are those of the host\n" +
		"  - SELinux does not confine it\n  - it has devices of the host (/dev/kvm)\n  - commands are in additional groups (kvm)\n" +
		"  - it is started with additional arguments (--cpuset-cpus=0)\n"
	if !strings.Contains(check.stdout, want) {
		t.Errorf("check says %s%s", check.stdout, check.stderr)
	}
}

// TestSetupBringsNoProgram checks that in a sandbox that shows the host's folders, setup cannot add the agent to PATH, and that a
// sweep ends before either runs.
func TestSetupBringsNoProgram(t *testing.T) {
	t.Parallel()
	for sandbox, there := range map[string]bool{"native": false, "none": true} {
		m := newMachine(t)
		m.write(t, "README", "x\n")
		m.commit(t)
		got := m.run(t, nil, "work", "-n", "--sandbox="+sandbox, "--setup=true", "--agent-command=no-such-agent", "--tracker=local", "--local-dir="+t.TempDir())
		if got.status != 0 || strings.Contains(got.stderr, "no-such-agent: not found in PATH; install it") == there {
			t.Errorf("%s: %+v", sandbox, got)
		}
	}
}
