package github_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/github/githubtest"
)

// git runs git without the user's configuration.
func git(t *testing.T, dir string, env []string, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.invalid"}, env...)
	exit, err := proc.Run(t.Context(), proc.Spec{Argv: append([]string{"git"}, args...), Dir: dir, Env: env, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(out.String()), exit.Code
}

// TestPushAndOpen pushes with the tracker's credentials, and opens a request for the branch.
func TestPushAndOpen(t *testing.T) {
	t.Parallel()
	s, g := start(t)
	s.UseGit()
	user, secret, err := g.GitCredentials(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ask := filepath.Join(t.TempDir(), "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\ncase $1 in User*) echo \"$GIT_USER\";; *) echo \"$GIT_SECRET\";; esac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"GIT_ASKPASS=" + ask, "GIT_USER=" + user, "GIT_SECRET=" + secret}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"commit", "-q", "--allow-empty", "-m", "one"}, {"push", "-q", s.GitURL(), "main", "main:ralph/1"}} {
		if out, code := git(t, dir, env, args...); code != 0 {
			t.Fatalf("git %q: %s", args, out)
		}
	}
	if out, code := git(t, dir, []string{"GIT_ASKPASS=" + ask, "GIT_USER=x", "GIT_SECRET=wrong"}, "ls-remote", s.GitURL()); code == 0 {
		t.Errorf("a wrong token reads the repository: %s", out)
	}
	head, _ := git(t, dir, nil, "rev-parse", "HEAD")
	ref, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/1", Base: "main", Title: "Fix"})
	if err != nil || s.Issue(ref.Number).Pull.SHA != head {
		t.Errorf("OpenRequest = %+v, %v", ref, err)
	}
	if _, err := g.OpenRequest(t.Context(), tracker.Request{Head: "ralph/2", Base: "main", Title: "Fix"}); err == nil || !strings.Contains(err.Error(), "422") {
		t.Errorf("OpenRequest for a branch that was not pushed = %v", err)
	}
	if len(s.Pulls()) != 1 || githubtest.Owner == "" {
		t.Errorf("pull requests: %v", s.Pulls())
	}
}
