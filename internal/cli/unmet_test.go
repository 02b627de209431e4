package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// TestRequestsThatASandboxCannotMeet checks that such settings are errors, whatever their source.
func TestRequestsThatASandboxCannotMeet(t *testing.T) {
	t.Parallel()
	const none, rest = "sandbox none cannot limit resources", "; remove the setting, or choose another sandbox with --sandbox\n"
	for _, c := range []struct {
		sandbox, flag, want string // empty: the sandbox can
	}{
		{"none", "--memory-mb=512", none},
		{"none", "--cpus=1", none},
		{"none", "--pids=99", none},
		{"none", "--scratch-mb=99", none},
		{"none", "--mount=host=/etc", "sandbox none shows the whole host"},
		{"none", "--allow=goproxy.example.com", "sandbox none does not filter connections"},
		{"none", "--image=x", "sandbox none uses no images"},
		{"none", "--container-runtime=runsc", "sandbox none uses no containers"},
		{"native", "--image=x", "sandbox native uses no images"},
		{"native", "--container-runtime=runsc", "sandbox native uses no containers"},
		{"native", "--container-arg=x", "sandbox native uses no containers"},
		{"sbx", "--container-user=0:0", "sandbox sbx uses no containers"},
		{"sbx", "--scratch-mb=99", "sandbox sbx cannot limit scratch space"},
		{"docker", "--sandbox-show=/etc", "sandbox docker shows folders of the host only with --mount"},
		{"none", "--memory-mb=0", ""},
		{"none", "--sandbox-show=/etc", ""}, // none shows everything
		{"none", "--allow=", ""},
		{"none", "--container-network=none", ""},
	} {
		m := newMachine(t)
		m.commit(t)
		mark := filepath.Join(m.root, "mark")
		got := m.run(t, nil, "sandbox", "exec", "--sandbox", c.sandbox, c.flag, "--", "touch", mark)
		name, _, _ := strings.Cut(c.flag, "=")
		_, err := os.Lstat(mark)
		want := "ralph: " + name + ": " + c.want + rest
		if c.want != "" && (got.status != exit.Usage || got.stderr != want || err == nil) {
			t.Errorf("%s: %+v, want %s", c.flag, got, want)
		}
		if c.want == "" && (got.status != 0 || err != nil) {
			t.Errorf("%s: %+v", c.flag, got)
		}
	}
	m := newMachine(t)
	m.commit(t)
	m.write(t, ".ralph/config.yaml", "limit: 1\nmemory-mb: 512\n")
	want := "ralph: ROOT/repo/.ralph/config.yaml:2: memory-mb: " + none + rest
	got := m.run(t, nil, "run", "--prompt=x", "--agent-command=true", "--sandbox=none")
	if got.status != exit.Usage || got.stderr != want {
		t.Errorf("in a file: %+v", got)
	}
	m.write(t, ".ralph/config.yaml", "sandbox: native\nallow-private: [goproxy.example.com]\n")
	if got := m.run(t, nil, "trust", "--yes"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	got = m.run(t, nil, "sandbox", "exec", "--sandbox=none", "--", "true")
	if want := "ralph: warning: ROOT/repo/.ralph/config.yaml:2: allow-private is ignored: sandbox none does not filter connections\n"; got.status != 0 || got.stderr != want {
		t.Errorf("another sandbox by hand: %+v", got)
	}
	env := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_SANDBOX=none") }
	if got := m.run(t, env, "sandbox", "exec", "--memory-mb=0", "--", "true"); got.status != 0 {
		t.Errorf("taken back by a flag: %+v", got)
	}
}

// TestDoctorSaysOnceWhatDoesNotCount checks that the warning appears once, however many checks need the sandbox.
func TestDoctorSaysOnceWhatDoesNotCount(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	m.commit(t)
	m.write(t, ".ralph/config.yaml", "sandbox: native\nsandbox-show: [/etc]\n")
	m.trust(t)
	got := m.run(t, nil, "doctor", "--sandbox=docker", "--image=x", "--agent-command=true")
	if n := strings.Count(got.stderr, "sandbox-show is ignored"); n != 1 {
		t.Errorf("%d times: %+v", n, got)
	}
}
