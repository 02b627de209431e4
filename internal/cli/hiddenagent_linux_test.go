package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// No issue is claimed for a command that the sandbox cannot start because it does not show its files.
func TestAgentThatTheSandboxDoesNotShow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	interpreter := filepath.Join(m.program(t, "interpreter", "true\n"), "interpreter")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!"+interpreter+" -x\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for command, hidden := range map[string]string{script: interpreter, "sh " + script: script, "sh -c " + script: script} {
		args := []string{"--sandbox=native", "--commit-author=A <a@b.c>", "--agent-command=" + command, "--remote=none"}
		got := m.run(t, nil, append([]string{"work"}, args...)...)
		want := strings.ReplaceAll("ralph: agent command is unavailable: sandbox native does not show "+hidden+"\nralph: sandbox-show: [\""+hidden+"\"] in your configuration\n", m.root, "ROOT")
		if got.status != exit.Parked || !strings.HasSuffix(got.stderr, want) || strings.Contains(got.stderr, "started") {
			t.Errorf("%s: %+v, want %s", command, got, want)
		}
		got = m.run(t, nil, "doctor", args[0], args[2])
		if want := strings.ReplaceAll("the sandbox does not show "+hidden+"\n", m.root, "ROOT"); !strings.Contains(got.stdout, want) {
			t.Errorf("doctor with %s: %+v, want %s", command, got, want)
		}
	}
}

// A link is shown with its folder, such as the interpreter of a Python virtual environment. Landlock follows links anyway.
func TestInterpreterThatIsALink(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\nlabels: [no-human]\n---\n# Add a file\n")
	m.commit(t)
	bin, script := t.TempDir(), filepath.Join(t.TempDir(), "script")
	if err := os.Symlink("/bin/sh", filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!"+filepath.Join(bin, "sh")+"\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for sandbox, want := range map[string]string{"native": "does not show " + bin + "\n", "landlock": ""} {
		got := m.run(t, nil, "doctor", "--sandbox="+sandbox, "--agent-command="+script)
		if says := strings.Contains(got.stdout, "the sandbox does not show"); says != (want != "") || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v, want %q", sandbox, got, want)
		}
	}
}
