package githubtest

import (
	"net/http"
	"strings"

	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// UseGit creates an empty repository for the project and returns its folder. From then on
// a pull request needs a pushed branch.
func (s *Server) UseGit() string {
	r := forgetest.NewRepository(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.git = r
	return r.Dir
}

// GitURL returns the address to clone from and push to.
func (s *Server) GitURL() string { return s.URL + "/" + Owner + "/" + Repo + ".git" }

// serveGit checks the token and passes the request to git.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	_, token, _ := r.BasicAuth()
	s.mu.Lock()
	a, g := s.tokens[token], s.git
	private, archived, name := s.repo.private, s.repo.archived, s.name
	write := forgetest.Pushes(r)
	ok := a != nil && (a.Ends.IsZero() || s.clock.Now().Before(a.Ends))
	allowed := ok && (!write || s.hasPermission(a, "write"))
	reads := ok && s.canRead(a)
	s.mu.Unlock()
	known := strings.HasPrefix(r.URL.Path, "/"+name+".git/")
	old, was := strings.CutPrefix(r.URL.Path, "/"+Owner+"/"+Repo+".git/")
	switch {
	case was && !known && r.Method == http.MethodGet:
		http.Redirect(w, r, s.URL+"/"+name+".git/"+old+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
	case g == nil, !known, private && ok && !reads:
		http.NotFound(w, r)
	case !ok:
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Invalid username or token.", http.StatusUnauthorized)
	case !allowed:
		http.Error(w, "Permission denied.", http.StatusForbidden)
	case write && archived:
		http.Error(w, "This repository was archived so it is read-only.", http.StatusForbidden)
	default:
		g.Serve(w, r, "/"+name+".git", a.Login)
		if write && r.Method == http.MethodPost {
			s.moved()
		}
	}
}

// moved updates the open pull requests after a push.
func (s *Server) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := map[string]string{}
	for line := range strings.Lines(s.git.Git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")) {
		sha, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		heads[strings.TrimPrefix(ref, "refs/heads/")] = sha
	}
	for _, i := range s.issues {
		if i.Pull == nil || i.Closed || i.Pull.Fork {
			continue
		}
		if sha := heads[i.Pull.Head]; sha != "" && sha != i.Pull.SHA {
			i.Pull.SHA, i.Updated = sha, s.now()
		}
	}
}
