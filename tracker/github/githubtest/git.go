package githubtest

import (
	"bytes"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// gitHost is the project's bare repository.
type gitHost struct {
	s       *Server
	root    string
	dir     string
	backend string
}

// UseGit makes an empty repository for the project and returns its folder. From then on a pull request needs a pushed
// branch.
func (s *Server) UseGit() string {
	root := s.t.TempDir()
	g := &gitHost{s: s, root: root, dir: filepath.Join(root, Owner, Repo+".git")}
	if err := os.MkdirAll(filepath.Dir(g.dir), 0o700); err != nil {
		s.t.Fatal(err)
	}
	g.backend = filepath.Join(g.run("--exec-path"), "git-http-backend")
	g.run("init", "--quiet", "--bare", "--initial-branch=main", g.dir)
	g.run("--git-dir", g.dir, "config", "http.receivepack", "true")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.git = g
	return g.dir
}

// GitURL is the address to clone from and push to.
func (s *Server) GitURL() string { return s.http.URL + "/" + Owner + "/" + Repo + ".git" }

func (g *gitHost) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.root, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C"}
}

// run runs git, which must succeed except when it looks up a branch.
func (g *gitHost) run(args ...string) string {
	var out, errs bytes.Buffer
	exit, err := proc.Run(g.s.t.Context(), proc.Spec{Argv: append([]string{"git"}, args...), Env: g.environ(), Stdout: &out, Stderr: &errs})
	if err != nil || (exit.Code != 0 && !slices.Contains(args, "rev-parse")) {
		g.s.t.Errorf("githubtest: git %s: %v %+v\n%s", strings.Join(args, " "), err, exit, &errs)
	}
	if exit.Code != 0 {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// head is the commit of a branch, or "".
func (g *gitHost) head(branch string) string {
	return g.run("--git-dir", g.dir, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch+"^{commit}")
}

// serveGit checks the token and lets git's own program do the rest.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	_, token, _ := r.BasicAuth()
	s.mu.Lock()
	a, g := s.tokens[token], s.git
	private, archived, name := s.repo.private, s.repo.archived, s.name
	write := strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
	ok := a != nil && (a.Ends.IsZero() || s.clock.Now().Before(a.Ends))
	allowed := ok && (!write || s.may(a, "write"))
	reads := ok && s.reads(a)
	s.mu.Unlock()
	rest, known := strings.CutPrefix(r.URL.Path, "/"+name+".git/")
	old, was := strings.CutPrefix(r.URL.Path, "/"+Owner+"/"+Repo+".git/")
	switch {
	case was && !known && r.Method == http.MethodGet:
		http.Redirect(w, r, s.http.URL+"/"+name+".git/"+old+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
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
		r.URL.Path = "/" + Owner + "/" + Repo + ".git/" + rest // on the disk
		h := &cgi.Handler{Path: g.backend, Dir: g.dir, Env: append(g.environ(), "GIT_PROJECT_ROOT="+g.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+a.Login)}
		h.ServeHTTP(w, r)
		if write && r.Method == http.MethodPost {
			s.moved()
		}
	}
}

// moved updates the open pull requests to their branches.
func (s *Server) moved() {
	s.mu.Lock()
	defer s.mu.Unlock()
	heads := map[string]string{}
	for line := range strings.Lines(s.git.run("--git-dir", s.git.dir, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads")) {
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
