package tree

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/config"
	"github.com/ralph-pool/ralph/worktree"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// Requests start from the remote's base, whatever the local branch is. Published branches do only if the remote's base contains
// the local one. Runs that publish nothing there do not ask the remote.
func TestBase(t *testing.T) {
	t.Parallel()
	const request, branch, merge = journal.PublishRequest, journal.PublishBranch, journal.PublishMerge
	for name, tt := range map[string]struct {
		here, there bool // a commit that the other side lacks
		gone        bool // the remote has no such branch
		want        map[journal.Publish]string
	}{
		"same":     {want: map[journal.Publish]string{request: "first", branch: "first", merge: "first"}},
		"old":      {there: true, want: map[journal.Publish]string{request: "there", branch: "there", merge: "first"}},
		"new":      {here: true, want: map[journal.Publish]string{request: "first", branch: "here", merge: "here"}},
		"diverged": {here: true, there: true, want: map[journal.Publish]string{request: "there", branch: "here", merge: "here"}},
		"gone":     {here: true, gone: true, want: map[journal.Publish]string{request: "", branch: "here", merge: "here"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			switch {
			case tt.gone:
				p.git(p.other, "push", "-q", "origin", "main:moved", ":main")
			case tt.there:
				p.git(p.other, "commit", "-q", "--allow-empty", "-m", "there")
				p.git(p.other, "push", "-q", "origin", "main")
			}
			if tt.here {
				p.git(p.dir, "commit", "-q", "--allow-empty", "-m", "here")
			}
			repo, err := worktree.Open(t.Context(), p.dir, worktree.Options{StateDir: filepath.Join(t.TempDir(), "state"), Remote: "origin"})
			if err != nil {
				t.Fatal(err)
			}
			for mode, want := range tt.want {
				m := &Maker{Config: &config.Config{Repo: repo, Base: "main", Publish: mode}}
				got, _, err := m.Base(t.Context())
				switch {
				case want == "" && errors.Is(err, worktree.ErrRemote):
				case err != nil:
					t.Errorf("%s: %v", mode, err)
				case p.git(p.dir, "log", "-1", "--format=%s", got.Commit) != want+"\n" || got.Name != "main":
					t.Errorf("%s: %+v, want %q", mode, got, want)
				case (got.Remote == "main") != (mode != merge && !tt.gone):
					t.Errorf("%s: the remote's branch is %q", mode, got.Remote)
				}
			}
		})
	}
}

// project is a repository, and another clone of its remote.
type project struct {
	t          *testing.T
	dir, other string
}

func newProject(t *testing.T) project {
	t.Helper()
	p := project{t, t.TempDir(), t.TempDir()}
	bare := t.TempDir()
	p.git(bare, "init", "-q", "--bare", "-b", "other")
	p.git(p.dir, "init", "-q", "-b", "main")
	p.git(p.dir, "commit", "-q", "--allow-empty", "-m", "first")
	p.git(p.dir, "remote", "add", "origin", bare)
	p.git(p.dir, "push", "-q", "origin", "main")
	p.git(p.other, "clone", "-q", "-b", "main", bare, ".")
	return p
}

func (p project) git(dir string, args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
