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
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
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
	switch {
	case tok == nil || user == "":
		w.Header().Set("WWW-Authenticate", `Basic realm="GitLab"`)
		http.Error(w, "HTTP Basic: Access denied", http.StatusUnauthorized)
	case !found || repository == nil || hidden || level == 0:
		http.Error(w, "The project you were looking for could not be found", http.StatusNotFound)
	case push && (archived || level < Developer || !mayPush(tok.scopes)):
		http.Error(w, "You are not allowed to push code to this project.", http.StatusForbidden)
	default:
		repository.Serve(w, r, "/"+path+".git", tok.user.Username)
	}
}

func mayPush(scopes []string) bool {
	return slices.Contains(scopes, "api") || slices.Contains(scopes, "write_repository")
}
