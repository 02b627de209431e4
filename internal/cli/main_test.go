package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// machine is a folder that stands for a user's machine: a home and an empty repository.
type machine struct {
	root, home, repo string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := machine{root: root, home: filepath.Join(root, "home"), repo: filepath.Join(root, "repo")}
	for _, dir := range []string{m.home, m.repo} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := exec.CommandContext(t.Context(), "git", "init", "--quiet", m.repo)
	git.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return m
}

func (m machine) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.repo, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (m machine) host(stdout, stderr *bytes.Buffer) Host {
	return Host{
		Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Dir: m.repo,
		Env: []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH")},
	}
}

// ran is what a command line did; the machine's folder is written as ROOT.
type ran struct {
	status         int
	stdout, stderr string
}

func (m machine) run(t *testing.T, change func(*Host), args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	h := m.host(&stdout, &stderr)
	if change != nil {
		change(&h)
	}
	status := Run(t.Context(), args, h)
	cut := func(b bytes.Buffer) string { return strings.ReplaceAll(b.String(), m.root, "ROOT") }
	return ran{status: status, stdout: cut(stdout), stderr: cut(stderr)}
}

// canceled is a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errKilled)
	return ctx
}
