package gitlab

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/tracker"
)

// git runs git without the user's configuration, with a user name and a secret for HTTP.
func git(t *testing.T, dir, user, secret string, args ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	helper := `credential.helper=!f() { echo "username=$GIT_USER"; echo "password=$GIT_SECRET"; }; f`
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv: append([]string{"git", "-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", helper}, args...),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
			"GIT_TERMINAL_PROMPT=0", "GIT_USER=" + user, "GIT_SECRET=" + secret, "LC_ALL=C"},
		Stdout: &out, Stderr: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), exit.Code == 0
}

// TestGitOverHTTP clones, pushes a branch and opens a request for it, with the login from GitCredentials.
func TestGitOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	user, password, err := r.GitCredentials(t.Context())
	if err != nil || user != "oauth2" || password != secret {
		t.Fatalf("GitCredentials = %q, %q, %v", user, password, err)
	}
	seed, clone := t.TempDir(), filepath.Join(t.TempDir(), "clone")
	mustGit := func(dir string, args ...string) string {
		t.Helper()
		out, ok := git(t, dir, user, password, args...)
		if !ok {
			t.Fatalf("git %v: %s", args, out)
		}
		return strings.TrimSpace(out)
	}
	mustGit(seed, "init", "--quiet", "--initial-branch=main")
	mustGit(seed, "commit", "--quiet", "--allow-empty", "-m", "first")
	r.project.AddRepository(t, seed)

	mustGit(seed, "clone", "--quiet", r.project.Remote(), clone)
	mustGit(clone, "commit", "--quiet", "--allow-empty", "-m", "second")
	mustGit(clone, "push", "--quiet", "origin", "HEAD:refs/heads/ralph/1", "HEAD:refs/ralph/claims/1")
	got := r.open(t, tracker.Request{Key: "1", Head: "ralph/1", Base: "main", Title: "x", Body: "y"})
	if head := mustGit(clone, "rev-parse", "HEAD"); got.Number != 1 || r.project.Merges()[0].SHA != head {
		t.Errorf("request %+v has commit %s, want %s", got, r.project.Merges()[0].SHA, head)
	}
	if _, err := r.OpenRequest(t.Context(), tracker.Request{Key: "2", Head: "ralph/2", Base: "main", Title: "x"}); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("a request for a branch that is not there: %v", err)
	}

	r.server.AddToken(r.ralph, "read-only", time.Time{}, "read_api", "read_repository")
	r.server.AddToken(r.grace, "of-a-reporter", time.Time{}, "api")
	for _, wrong := range []string{"read-only", "of-a-reporter", "unknown", ""} {
		if out, ok := git(t, clone, user, wrong, "push", r.project.Remote(), "HEAD:refs/heads/evil"); ok {
			t.Errorf("pushed with the token %q: %s", wrong, out)
		}
	}
	if out := mustGit(clone, "ls-remote", "origin"); strings.Contains(out, "evil") {
		t.Errorf("refs are:\n%s", out)
	}
	var pushes int
	for _, c := range r.server.Calls() {
		if c.Git() && c.Write() && strings.HasSuffix(c.Path, "git-receive-pack") && c.Status == 200 {
			pushes++
		}
	}
	if pushes != 1 {
		t.Errorf("%d pushes are recorded, want 1", pushes)
	}
}
