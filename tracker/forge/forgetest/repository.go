package forgetest

import (
	"bytes"
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

// Repository is the bare repository of a project.
type Repository struct {
	Dir string
	t   testing.TB
}

// NewRepository makes an empty bare repository, which is removed at the end of the test.
func NewRepository(t testing.TB) *Repository {
	t.Helper()
	r := &Repository{filepath.Join(t.TempDir(), "repository.git"), t}
	r.Git("init", "--quiet", "--bare", "--initial-branch=main", r.Dir)
	r.Git("config", "http.receivepack", "true")
	return r
}

// environ returns an environment without the user's git configuration.
func (r *Repository) environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_DIR=" + r.Dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
	}
}

// Git runs git in the repository and returns its output. It reports a failure as a test error, except for rev-parse.
func (r *Repository) Git(args ...string) string {
	var out, errs bytes.Buffer
	exit, err := proc.Run(context.Background(), proc.Spec{
		Argv:   append([]string{"git"}, args...),
		Env:    r.environ(),
		Stdout: &out,
		Stderr: &errs,
	})
	if err != nil || exit.Code != 0 && !slices.Contains(args, "rev-parse") {
		r.t.Errorf("forgetest: git %s: %v %+v\n%s", strings.Join(args, " "), err, exit, &errs)
	}
	if exit.Code != 0 {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// Head returns the commit of a branch, or "".
func (r *Repository) Head(branch string) string {
	return r.Git("rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch+"^{commit}")
}

// Pushes reports whether git makes the request for a push.
func Pushes(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
}

// Serve answers a request below root with git http-backend, on behalf of the user, without further checks.
func (r *Repository) Serve(w http.ResponseWriter, req *http.Request, root, user string) {
	program, err := exec.LookPath("git")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	(&cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Dir: r.Dir, Root: root,
		Env: append(r.environ(), "GIT_PROJECT_ROOT="+r.Dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+user),
	}).ServeHTTP(w, req)
}
