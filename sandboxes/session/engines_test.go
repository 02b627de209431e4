package session_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
	"github.com/ralph-pool/ralph/sandboxes/session"
	"github.com/ralph-pool/ralph/worktree"
)

// given changes the owner of a folder to the user that commands run as.
func given(t *testing.T, dir string) {
	t.Helper()
	containertest.Readable(t, filepath.Dir(dir))
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 4321, 4321)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestContainers(t *testing.T) {
	containertest.Run(t, func(t *testing.T, p sandboxes.Provider) {
		dir := repository(t, map[string]string{"f": "1\n", ".gitignore": "ignored\n", "gone": "gone\n"})
		write(t, filepath.Join(dir, "ignored"), "before\n")
		given(t, dir)
		s := prepare(t, session.Config{Provider: p, Spec: spec(dir), Outputs: []string{"in/*"}})
		put := func(name, text string) {
			t.Helper()
			if err := errors.Join(s.Workspace.PutFile(name, text), s.Send(t.Context(), name)); err != nil {
				t.Fatal(err)
			}
		}
		put("in/note", "put")
		sh(t, s, "echo more >>in/note; echo x >in/other; echo 3 >f; rm gone; echo after >ignored; ln -s f link")
		put("later", "put later\n")
		a := collect(t, s)
		if a.Diff.Missing+a.Diff.Incomplete != "" || a.Base == "" {
			t.Errorf("base %q, %+v", a.Base, a.Diff)
		}
		for _, want := range []string{"\n-1\n+3\n", "+putmore", "\n+put later\n", "\n-gone\n", "new file mode 120000"} {
			if !bytes.Contains(a.Diff.Text, []byte(want)) {
				t.Errorf("%q is not in the diff:\n%s", want, a.Diff.Text)
			}
		}
		if bytes.Contains(a.Diff.Text, []byte("after")) {
			t.Errorf("what is ignored is in the diff:\n%s", a.Diff.Text)
		}
		if len(a.Files) != 2 || string(a.Files[0].Content) != "putmore\n" {
			t.Errorf("files %+v", a.Files)
		}
		if got := git(t, dir, "-c", "safe.directory=*", "log", "--format=%s"); got != "base\n" {
			t.Errorf("the workspace's own repository has %q", got)
		}
		if len(a.Notices) > 0 {
			t.Errorf("notices %q", a.Notices)
		}
	})
}

// Without a repository there is no diff, and git's own reason is reported, wherever the files are.
func TestContainersWithoutARepository(t *testing.T) {
	containertest.Run(t, func(t *testing.T, p sandboxes.Provider) {
		dir := t.TempDir()
		given(t, dir)
		s := prepare(t, session.Config{Provider: p, Spec: spec(dir)})
		if a := collect(t, s); !strings.HasPrefix(a.Diff.Missing, "fatal: not a git repository") {
			t.Errorf("%+v", a.Diff)
		}
	})
}

// Commands can commit: in the workspace's own repository if it is mounted, in a private one if it is copied.
func TestContainersCommit(t *testing.T) {
	containertest.Run(t, func(t *testing.T, p sandboxes.Provider) {
		dir := repository(t, map[string]string{"f": "1\n"})
		c := session.Config{Provider: p, Spec: spec(dir)}
		if p.Capabilities().Files == sandboxes.Copy {
			c.Spec = private(t, dir)
		} else {
			given(t, dir)
		}
		s := prepare(t, c)
		sh(t, s, "echo 2 >f; git commit -qam two; echo 3 >f")
		a := collect(t, s)
		if a.Base != strings.TrimSpace(git(t, dir, "-c", "safe.directory=*", "rev-parse", "main")) && p.Capabilities().Files == sandboxes.Copy {
			t.Errorf("base %s", a.Base)
		}
		if a.Diff.Missing+a.Diff.Incomplete != "" || !bytes.Contains(a.Diff.Text, []byte("\n-1\n+3\n")) {
			t.Errorf("%+v\n%s", a.Diff, a.Diff.Text)
		}
	})
}

// private returns a worktree with a private repository, as package pool creates them.
func private(t *testing.T, dir string) sandboxes.Spec {
	t.Helper()
	state, err := filepath.EvalSymlinks(containertest.Readable(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	repo, err := worktree.Open(t.Context(), dir, worktree.Options{StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	onto, err := repo.Base(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Add(t.Context(), worktree.Spec{Run: "session", Key: "1", Branch: "ralph/1", Base: onto, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	own, err := tree.Sandbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tree.Dir(), 4321, 4321); err != nil {
		t.Fatal(err)
	}
	s := spec(tree.Dir())
	s.GitDir, s.Objects = own.GitDir, own.Objects
	return s
}

// The notices include a process that was killed at a limit.
func TestContainersNotice(t *testing.T) {
	containertest.Run(t, func(t *testing.T, p sandboxes.Provider) {
		dir := t.TempDir()
		given(t, dir)
		c := session.Config{Provider: p, Spec: spec(dir)}
		c.Spec.Limits.Memory = 64 << 20
		s := prepare(t, c)
		// The kernel may kill either process, so any Exit is fine.
		if _, err := s.Run(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "head -c 100000000 /dev/zero | tail"}}); err != nil {
			t.Fatal(err)
		}
		if a := collect(t, s); !sandboxtest.Killed(a.Notices, 64<<20) {
			t.Errorf("notices %q", a.Notices)
		}
	})
}
