package gitlabtest

import (
	"context"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
)

// AddRepository gives the project a bare repository, which git reaches over HTTP with a token as password, and returns
// its folder. It is a copy of from; an empty from makes an empty one.
func (p *Project) AddRepository(t testing.TB, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repository.git")
	run(t, "git", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	if from != "" {
		run(t, "git", "-C", from, "push", "--quiet", dir, "refs/heads/*:refs/heads/*")
	}
	run(t, "git", "-C", dir, "config", "http.receivepack", "true")
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.git = dir
	return dir
}

func run(t testing.TB, argv ...string) {
	t.Helper()
	out := proc.NewTail(4096)
	exit, err := proc.Run(context.Background(), proc.Spec{Argv: argv, Env: gitEnv(), Stdout: out, Stderr: out})
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v: %+v, %v\n%s", argv, exit, err, out)
	}
}

// gitEnv isolates git from the user's configuration.
func gitEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
}

// branch is the commit a branch points to; empty when there is none.
func (p *Project) branch(name string) string {
	if p.git == "" {
		return ""
	}
	out := proc.NewTail(256)
	exit, err := proc.Run(context.Background(), proc.Spec{
		Argv: []string{"git", "-C", p.git, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/" + name},
		Env:  gitEnv(), Stdout: out,
	})
	if err != nil || exit.Code != 0 {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// serveGit answers the git program. The password must be a token with a sufficient scope and role.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) (status int, username string) {
	path, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	user, secret, _ := r.BasicAuth()
	push := strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
	s.mu.Lock()
	p, tok := s.project(path), s.tokens[secret]
	level, dir, archived, hidden := 0, "", false, false
	if p != nil {
		dir, archived, hidden = p.git, p.Archived, p.Hidden
		if tok != nil {
			level = p.level(tok.user.ID)
		}
	}
	s.mu.Unlock()
	refuse := func(status int, text string) int {
		http.Error(w, text, status)
		return status
	}
	switch {
	case tok == nil || user == "":
		w.Header().Set("WWW-Authenticate", `Basic realm="GitLab"`)
		return refuse(http.StatusUnauthorized, "HTTP Basic: Access denied"), ""
	case !found || dir == "" || hidden || level == 0:
		return refuse(http.StatusNotFound, "The project you were looking for could not be found"), tok.user.Username
	case push && archived:
		return refuse(http.StatusForbidden, "You are not allowed to push code to this project."), tok.user.Username
	case push && (level < Developer || !mayPush(tok.scopes)):
		return refuse(http.StatusForbidden, "You are not allowed to push code to this project."), tok.user.Username
	}
	program, err := exec.LookPath("git")
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error()), tok.user.Username
	}
	kept := &recorded{ResponseWriter: w, status: http.StatusOK}
	h := &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: dir, Root: "/" + path + ".git",
		Env: append(gitEnv(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+tok.user.Username),
	}
	h.ServeHTTP(kept, r)
	return kept.status, tok.user.Username
}

func mayPush(scopes []string) bool {
	return slices.Contains(scopes, "api") || slices.Contains(scopes, "write_repository")
}

// recorded keeps the status of an answer.
type recorded struct {
	http.ResponseWriter
	status int
}

func (r *recorded) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
