package session_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// each runs a test on every provider.
func each(t *testing.T, test func(t *testing.T, p sandboxes.Provider)) {
	t.Helper()
	t.Parallel()
	for _, p := range providers() {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// prepare opens a session that is cleaned up when the test ends.
func prepare(t *testing.T, c session.Config) *session.Session {
	t.Helper()
	s, err := session.Prepare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Cleanup(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// spec returns the spec for a workspace.
func spec(dir string) sandboxes.Spec {
	return sandboxes.Spec{Worktree: dir, Env: []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}}
}

// sh runs a script inside, which must succeed.
func sh(t *testing.T, s *session.Session, script string) session.Result {
	t.Helper()
	r, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"sh", "-ec", script}})
	if err != nil || !r.Exit.OK() {
		t.Fatalf("%s: %+v, %v\n%s%s", script, r.Exit, err, r.Stdout, r.Stderr)
	}
	return r
}

// git runs git on the host.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), spec(dir).Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// repository creates a repository with a commit of the files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "the workspace")
	git(t, filepath.Dir(dir), "init", "--quiet", "-b", "main", dir)
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--allow-empty", "-m", "base")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func collect(t *testing.T, s *session.Session) session.Artefacts {
	t.Helper()
	a, err := s.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a
}
