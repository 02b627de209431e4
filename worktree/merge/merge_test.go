package merge

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/checkout"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/operation"
	"github.com/ralph-pool/ralph/worktree/record"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// site is a repository with two commits on main, which is checked out, and a commit on top of them.
type site struct {
	*testing.T
	dir, common string
	base        record.Base
	tip         string // changes a and dir/b, removes c, adds d and new/e
	repo        Repo
	// afterLook is what the user does after ralph has looked at the checkouts for the first time.
	afterLook func()
}

func newSite(t *testing.T) *site {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, dir: filepath.Join(top, "project")}
	s.common = filepath.Join(s.dir, ".git")
	s.run(top, "git", "init", "-q", "-b", "main", s.dir)
	s.write("a", "old")
	s.write("dir/b", "old")
	s.commit("first")
	s.write("c", "old")
	s.write("mine", "old")
	first := s.commit("second")
	s.git("switch", "-q", "--detach")
	s.write("a", "new")
	s.write("dir/b", "new")
	s.write("d", "new")
	s.write("new/e", "new")
	s.git("rm", "-q", "c")
	s.tip = s.commit("work")
	s.git("switch", "-q", "main")
	s.base = record.Base{Name: "main", Ref: "refs/heads/main", Commit: first}
	state := filepath.Join(top, "state")
	if err := os.MkdirAll(filepath.Join(state, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	g := git.New(state).Pin(s.common, s.common, s.dir)
	s.repo = Repo{
		Git: g, Common: s.common, Top: s.dir, State: state, Temp: filepath.Join(state, "tmp"), Runs: filepath.Join(state, "worktrees"),
		Checkouts: func(ctx context.Context) ([]checkout.Checkout, error) {
			all, err := checkout.List(ctx, g)
			if act := s.afterLook; act != nil {
				s.afterLook = nil
				act()
			}
			return all, err
		},
	}
	return s
}

func (s *site) run(dir, name string, args ...string) string {
	s.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (s *site) git(args ...string) string {
	s.Helper()
	return s.run(s.dir, "git", args...)
}

func (s *site) write(name, content string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.Fatal(err)
	}
}

func (s *site) commit(message string) string {
	s.Helper()
	s.git("add", "-A")
	s.git("commit", "-q", "-m", message)
	return s.git("rev-parse", "HEAD")
}

func (s *site) merge() (string, error) {
	return s.repo.MergeInto(s.Context(), s.base, s.tip, "m")
}

// check checks where main is, and what the checkout looks like.
func (s *site) check(main, status string) {
	s.Helper()
	if got := s.git("rev-parse", "main"); got != main {
		s.Errorf("main is at %s, want %s", got, main)
	}
	if got := s.git("status", "--porcelain"); got != status {
		s.Errorf("status:\n%s\nwant:\n%s", got, status)
	}
	if left, err := filepath.Glob(filepath.Join(s.common, "index?*")); err != nil || len(left) > 0 {
		s.Errorf("left in the git directory: %v, %v", left, err)
	}
}

// The user takes main out of the checkout, or main away from its commit, after ralph has looked. Ralph then neither moves what
// is checked out instead nor says that main was moved.
func TestUserLeavesTheBranch(t *testing.T) {
	t.Parallel()
	for act, want := range map[string]error{
		"git switch -q -c feature":                                              nil,
		"git switch -q --detach":                                                nil,
		"git switch -q -c feature HEAD~1":                                       nil,
		"git reset -q --hard HEAD~1":                                            git.ErrMoved,
		"git commit -q --allow-empty -m x":                                      git.ErrMoved,
		"GIT_SEQUENCE_EDITOR='sed -i.bak s/pick/edit/' git rebase -q -i HEAD~1": operation.ErrUnfinished,
		"git bisect start HEAD HEAD~1":                                          operation.ErrUnfinished,
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			var head, main, status string
			s.afterLook = func() {
				s.run(s.dir, "sh", "-c", act)
				head, main, status = s.git("rev-parse", "HEAD"), s.git("rev-parse", "main"), s.git("status", "--porcelain")
			}
			commit, err := s.merge()
			if !errors.Is(err, want) {
				t.Fatalf("%q, %v; want %v", commit, err, want)
			}
			if want == nil {
				main = s.tip
			}
			s.check(main, status)
			if got := s.git("rev-parse", "HEAD"); got != head {
				t.Errorf("HEAD was at %s, and is at %s", head, got)
			}
		})
	}
}

// The user switches to main while ralph moves it. Then the checkout must not undo the merge.
func TestUserSwitchesToTheBranch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.git("switch", "-q", "-c", "feature")
	s.afterLook = func() { s.git("switch", "-q", "main") }
	if commit, err := s.merge(); err != nil || commit != s.tip {
		t.Fatalf("%s, %v", commit, err)
	}
	s.check(s.tip, "")
}

// A killed git has updated some files of the checkout. They are ralph's, also if they look like changes of the user's.
func TestHalfMerged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("a", "new")
	s.write("new/e", "new")
	s.run(s.dir, "rm", "c")
	s.write("dir/b", "mine")
	if _, err := s.merge(); !errors.Is(err, ErrDirty) || !strings.Contains(err.Error(), "(dir/b)") {
		t.Fatal(err)
	}
	s.check(s.base.Commit, " M a\n D c\n M dir/b\n?? new/")
	s.write("dir/b", "old")
	s.write("mine", "mine")
	if commit, err := s.merge(); err != nil || commit != s.tip {
		t.Fatalf("%s, %v", commit, err)
	}
	s.check(s.tip, " M mine")
}

// A lock of another git keeps the branch from being moved. Its file is named, and the checkout does not change.
func TestLockedBranch(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refs/heads/main.lock", "HEAD.lock", "index.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			lock := filepath.Join(s.common, name)
			if err := os.WriteFile(lock, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := s.merge()
			if err == nil || errors.Is(err, ErrDirty) || !strings.Contains(err.Error(), lock) {
				t.Errorf("the lock is not named: %v", err)
			}
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
			s.check(s.base.Commit, "")
			if commit, err := s.merge(); err != nil || commit != s.tip {
				t.Errorf("%s, %v", commit, err)
			}
		})
	}
}

// The command in the message makes room for the merge, also if the files are new or ignored, and merges.
func TestCommandForFilesInTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(".git/info/exclude", "new/\n")
	s.write("a", "mine")
	s.write("d", "mine")
	s.write("new/e", "mine")
	_, err := s.merge()
	if !errors.Is(err, ErrDirty) {
		t.Fatal(err)
	}
	s.check(s.base.Commit, " M a\n?? d")
	_, command, _ := strings.Cut(err.Error(), ": git ")
	s.run(s.dir, "sh", "-c", "git "+command)
	s.check(s.tip, "")
	for _, name := range []string{"a", "^3:d", "^3:new/e"} {
		if got := s.git("show", "stash@{0}"+strings.Replace(":"+name, ":^", "^", 1)); got != "mine" {
			t.Errorf("%s in the stash: %q", name, got)
		}
	}
}
