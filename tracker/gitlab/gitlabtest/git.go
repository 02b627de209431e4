package gitlabtest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// AddRepository gives the project a bare repository and returns its folder. git can access it over HTTP with a token as the
// password. It is a copy of from; without from it is empty.
func (p *Project) AddRepository(t testing.TB, from string) string {
	t.Helper()
	r := forgetest.NewRepository(t)
	if from != "" {
		r.Git("fetch", "--quiet", from, "refs/heads/*:refs/heads/*")
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.git = r
	return r.Dir
}

// branch returns the commit of a branch; empty if there is none.
func (p *Project) branch(name string) string {
	if p.git == nil {
		return ""
	}
	return p.git.Head(name)
}

// serveGit answers git. The password must be a token with a sufficient scope and role.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) (status int, username string) {
	path, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	user, secret, _ := r.BasicAuth()
	push := forgetest.Pushes(r)
	s.mu.Lock()
	p, tok := s.project(path), s.tokens[secret]
	level, archived, hidden := 0, false, false
	var repository *forgetest.Repository
	if p != nil {
		repository, archived, hidden = p.git, p.Archived, p.Hidden
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
	case !found || repository == nil || hidden || level == 0:
		return refuse(http.StatusNotFound, "The project you were looking for could not be found"), tok.user.Username
	case push && archived:
		return refuse(http.StatusForbidden, "You are not allowed to push code to this project."), tok.user.Username
	case push && (level < Developer || !mayPush(tok.scopes)):
		return refuse(http.StatusForbidden, "You are not allowed to push code to this project."), tok.user.Username
	}
	kept := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
	repository.Serve(kept, r, "/"+path+".git", tok.user.Username)
	return kept.status, tok.user.Username
}

func mayPush(scopes []string) bool {
	return slices.Contains(scopes, "api") || slices.Contains(scopes, "write_repository")
}

// statusRecorder records the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
