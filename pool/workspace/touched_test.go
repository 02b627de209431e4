package workspace

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// spaced isolates nothing, but claims that it does.
type spaced struct{ sandboxes.Provider }

func (spaced) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.Namespaces}
}

// committed returns a repository with these files in its first commit.
func committed(t *testing.T, o worktree.Options, files ...string) (*worktree.Repo, worktree.Base) {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "x"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	o.StateDir = t.TempDir()
	repo, err := worktree.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	base, err := repo.Base(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	return repo, base
}

// opened returns a checkout of files in which nothing has run, with a sandbox.
func opened(t *testing.T, files ...string) *Workspace {
	t.Helper()
	repo, base := committed(t, worktree.Options{}, files...)
	tree, err := repo.Add(t.Context(), worktree.Spec{Run: "r", Key: "k", Base: base, Detached: true, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	w := (&Config{Repo: repo, Sandboxes: spaced{none}, Log: slog.New(slog.DiscardHandler)}).New("r", tree, nil, nil)
	if _, err := tree.Sandbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.markStartBeforeOpen(); w.startMark == nil && !stampsChanges(w.Dir) {
		if _, known := w.mayHaveChanged(t.Context()); known {
			t.Error("a change could be told on a file system that need not note it")
		}
		t.Skip("this file system need not note every change")
	}
	if w.Sandbox, err = none.Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: w.Dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Sandbox.Close(t.Context()) })
	return w
}

// later waits until the clock of the file system has moved on.
func (b *startMark) later(t *testing.T) {
	t.Helper()
	for file := filepath.Join(t.TempDir(), "clock"); ; {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil {
			t.Fatal(err)
		} else if info.ModTime().Sub(b.change) > clockTick {
			b.wait = 2 * clockTick
			return
		}
	}
}

// Commands in a checkout cannot hide which of its files may have changed; other files are not read again.
func TestFilesThatMayHaveChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ do, may string }{
		"nothing":               {`cat a sub/b >/dev/null; ls -R >/dev/null`, ""},
		"content of equal size": {`touch -r sub/b "$TMP"; printf 'sub/B' >sub/b; touch -r "$TMP" sub/b`, "sub/b"},
		"mode":                  {`chmod 755 sub/b`, "sub/b"},
		"through a link":        {`ln -f a "$TMP" 2>/dev/null && echo x >"$TMP" || echo x >a`, "a"},
		"removed":               {`rm sub/deep/c`, "sub/deep/c"},
		"a folder renamed":      {`mv sub/deep sub/deeper`, "sub/b sub/deep/c sub/other/d"},
		"a folder replaced":     {`mv sub/deep "$TMP.d" && cp -a "$TMP.d" sub/deep`, "sub/b sub/deep/c sub/other/d"},
		"folders change places": {`mv sub/deep sub/x && mv sub/other sub/deep && mv sub/x sub/other`, "sub/b sub/deep/c sub/other/d"},
		"another file":          {`echo x >sub/deep/new`, "sub/deep/c"},
		"at the top":            {`echo x >new`, "a sub/b sub/deep/c sub/other/d z/e"},
		"with an odd name":      {`echo x >"z/$(printf 'a\nb')"`, "z/e"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := []string{"a", "sub/b", "sub/deep/c", "sub/other/d", "z/e"}
			w := opened(t, files...)
			if _, known := w.mayHaveChanged(t.Context()); known {
				t.Error("no time has passed, and still a change could be told from the checkout")
			}
			w.startMark.later(t)
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", c.do)
			cmd.Dir, cmd.Env = w.Dir, append(os.Environ(), "TMP="+filepath.Join(t.TempDir(), "tmp"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			may, known := w.mayHaveChanged(t.Context())
			var got []string
			for _, f := range files {
				if may != nil && may(f) {
					got = append(got, f)
				}
			}
			if strings.Join(got, " ") != c.may || !known || (may == nil) != (c.may == "") {
				t.Errorf("may have changed: %q (known: %v), want %q", got, known, c.may)
			}
		})
	}
}

// Opening the sandbox changes the owner of files over a layer; that does not count as a change by commands.
func TestFilesThatOpeningChanges(t *testing.T) {
	t.Parallel()
	for _, layered := range []bool{false, true} {
		w := opened(t, "a", "sub/b")
		if layered {
			if err := w.Tree.AddSetup(t.TempDir()); err != nil {
				t.Fatal(err)
			}
		}
		w.startMark.later(t)
		w.startMark.wait = 0
		if err := os.Chmod(filepath.Join(w.Dir, "a"), 0o644); err != nil {
			t.Fatal(err)
		}
		w.markStartAfterOpen(t.Context())
		if !layered {
			w.startMark.wait = 2 * clockTick
		}
		may, known := w.mayHaveChanged(t.Context())
		if !known || (may == nil) != layered {
			t.Errorf("over a layer: %v; a file may have changed: %v (known: %v)", layered, may != nil, known)
		}
	}
}

// On the host, too, a clean checkout without changes is not read again. Another folder in its place is.
func TestFilesThatMayHaveChangedOnHost(t *testing.T) {
	t.Parallel()
	for do, want := range map[string]string{
		`cat a sub/b >/dev/null`:                                  "",
		`echo more >>sub/b; touch -d 2020-01-01 sub/b`:            "sub/b",
		`p=$(dirname "$PWD"); mv "$p" "$p-old"; mv "$OTHER" "$p"`: "a sub/b",
	} {
		repo, base := committed(t, worktree.Options{}, "a", "sub/b")
		tree, err := repo.Add(t.Context(), worktree.Spec{Run: "r", Key: "k", Base: base, Detached: true})
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(repo.Temp(), "other") // older than the beginning, with other content
		if err := os.CopyFS(filepath.Join(other, filepath.Base(tree.Dir())), os.DirFS(tree.Dir())); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * clockTick) // so that change times differ from those of the run
		w := (&Config{Repo: repo, Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}), Log: slog.New(slog.DiscardHandler)}).New("r", tree, nil, nil)
		if err := w.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.startMark == nil && !stampsChanges(w.Dir) {
			t.Skip("this file system need not note every change")
		}
		exit, err := w.Sandbox.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-ec", do}, Env: []string{"OTHER=" + other}})
		if err != nil || !exit.OK() {
			t.Fatal(exit, err)
		}
		may, known := w.mayHaveChanged(t.Context())
		var got []string
		for _, f := range []string{"a", "sub/b"} {
			if !known || may != nil && may(f) {
				got = append(got, f)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: may have changed: %q (known: %v), want %q", do, got, known, want)
		}
		w.CloseSandbox(t.Context())
	}
}

// If git cannot list the files of the commit, that does not count as a change by the checks.
func TestFilesThatGitCannotList(t *testing.T) {
	t.Parallel()
	w := opened(t, "a")
	o := Checkout{Base: worktree.Base{Commit: strings.Repeat("1", 40)}}
	if got, err := w.touchedFiles(t.Context(), o); err == nil || len(got) > 0 {
		t.Errorf("files %q are said to have changed, error %v", got, err)
	}
}
