package homes

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/diff"
)

func TestMain(m *testing.M) {
	if after := os.Getenv(killedAfter); after != "" {
		panic(beKilled(after))
	}
	goleak.VerifyTestMain(m)
}

// homes returns the store of a repository with a Go module, and commits: one that changes a build file, and one that does not.
func homes(t *testing.T) (h *Store, first, source, module string) {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@b.example"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(file, text string) string {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", ".")
		git("commit", "-qm", "x")
		return git("rev-parse", "HEAD")
	}
	git("init", "-q")
	first = commit("go.mod", "module a\n")
	source = commit("a.go", "package a\n")
	module = commit("go.mod", "module b\n")
	repo, err := worktree.Open(t.Context(), dir, worktree.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return &Store{Dir: filepath.Join(t.TempDir(), "homes"), MaxBytes: 1 << 20, Repo: repo, Log: slog.New(slog.DiscardHandler)}, first, source, module
}

// filled fills a home with this number of bytes.
func filled(t *testing.T, h *Store, commit string, size int) bool {
	t.Helper()
	f, err := h.Fill(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	if f == nil {
		return false
	}
	closed := filepath.Join(f.dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(closed, "x"), make([]byte, size), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o500); err != nil { //nolint:gosec // as caches of tools have it
		t.Fatal(err)
	}
	f.End(t.Context(), true)
	return true
}

func TestHomes(t *testing.T) {
	t.Parallel()
	h, first, source, module := homes(t)
	if w := h.Use(t.Context(), first, "", false); w != nil {
		t.Errorf("a home before one is made: %s", w.dir)
	}
	if !filled(t, h, first, 100<<10) || filled(t, h, source, 1) {
		t.Error("one home is for all bases that build the same")
	}
	used := h.Use(t.Context(), source, "", false)
	dir := used.dir
	if _, err := os.Stat(filepath.Join(dir, "closed", "x")); err != nil {
		t.Error(err)
	}
	// A second store acts like another process: the lock belongs to the open file.
	other := &Store{Dir: h.Dir, MaxBytes: 120 << 10, Repo: h.Repo, Log: h.Log}
	if w := other.Use(t.Context(), module, "", false); w != nil {
		t.Errorf("the home of another module: %s", w.dir)
	}
	if w := other.Use(t.Context(), module, first, false); w == nil || w.Alone {
		t.Errorf("the home of the base is no cache for it: %+v", w)
	} else {
		w.Done()
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, past, past); err != nil {
		t.Fatal(err)
	}
	if !filled(t, other, module, 100<<10) {
		t.Error("not filled")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("a home in use is gone: %v", err)
	}
	used.Done()
	if err := os.Chtimes(dir, past, past); err != nil {
		t.Fatal(err)
	}
	other.Prune(t.Context(), other.MaxBytes)
	if _, err := os.Stat(dir); err == nil {
		t.Error("there is more than may be kept")
	}
	if w := other.Use(t.Context(), module, "", false); w == nil {
		t.Error("the latest is gone")
	} else {
		w.Done()
	}
}

// With Inputs, only these files and folders matter.
func TestHomesInputs(t *testing.T) {
	t.Parallel()
	h, first, source, module := homes(t)
	h.Inputs = []string{"a.go", "sub"}
	name := func(commit string) string {
		got, err := h.name(t.Context(), commit, "")
		if err != nil || got.dependsOnInputsOnly || !slices.Contains(got.unknown, "sub") { // it may be a mistake
			t.Fatal(got, err)
		}
		return got.name
	}
	if name(first) == name(source) || name(source) != name(module) {
		t.Errorf("%s, %s, %s", name(first), name(source), name(module))
	}
	h.Inputs, h.names = []string{"./a.go", "go.mod"}, nil
	if got, err := h.name(t.Context(), source, ""); err != nil || !got.dependsOnInputsOnly {
		t.Error(got, err)
	}
	h.HomeOnly, h.names = true, nil
	if got, err := h.name(t.Context(), source, ""); err != nil || got.dependsOnInputsOnly {
		t.Error(got, err)
	}
}

// The target of a link and the content of a submodule are not in the commit's tree at that place: setup may read any other file
// by them.
func TestHomesInputsOfLinks(t *testing.T) {
	t.Parallel()
	h, first, _, module := homes(t)
	git := h.Repo.Git()
	blob, err := git.Output(t.Context(), "rev-parse", first+":go.mod")
	if err != nil {
		t.Fatal(err)
	}
	name := func(mode, object, file string) homeName {
		commit, err := diff.Commit(t.Context(), git, first, []diff.Edit{{Path: file, Entry: diff.Entry{Mode: mode, ID: strings.TrimSpace(object)}}}, "x\n")
		if err != nil {
			t.Fatal(err)
		}
		n, err := h.name(t.Context(), commit, "")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for what, c := range map[string]struct {
		mode, file string
		inputs     []string
		alone      bool
	}{
		"a link":                  {"120000", "lib", []string{"lib", "go.mod"}, false},
		"a link's folder":         {"120000", "lib", []string{"lib/a", "go.mod"}, false},
		"below it":                {"120000", "lib/a/b", []string{"lib"}, false},
		"all":                     {"120000", "lib", []string{"."}, false},
		"a submodule":             {"160000", "lib", []string{"lib"}, false},
		"a folder of a submodule": {"160000", "lib", []string{"lib/a"}, false},
		"a link elsewhere":        {"120000", "other", []string{"go.mod"}, true},
		"a file":                  {"100644", "lib/a", []string{"lib", "go.mod"}, true},
	} {
		object := blob
		if c.mode == "160000" {
			object = module
		}
		h.Inputs, h.names = c.inputs, nil
		if got := name(c.mode, object, c.file); got.dependsOnInputsOnly != c.alone || len(got.unknown) == 0 != c.alone {
			t.Errorf("%s: %+v", what, got)
		}
	}
	h.Inputs, h.Reads.Files, h.names = nil, []string{"go.mod"}, nil
	if got := name("120000", blob, "sub/go.mod"); got.dependsOnInputsOnly || got.cache {
		t.Errorf("a manifest that is a link: %+v", got)
	}
}

// Files that setup has put into the worktree are not used after a restart of the machine, nor after a day. Setup makes them
// again.
func TestHomesOld(t *testing.T) {
	t.Parallel()
	h, first, _, _ := homes(t)
	h.Inputs = []string{"go.mod"}
	for i, age := range []string{"", "boot", "day"} {
		f, err := h.Fill(t.Context(), first)
		if f == nil || err != nil {
			t.Fatalf("%d: not filled: %v", i, err)
		}
		tree := t.TempDir()
		if err := os.WriteFile(filepath.Join(tree, "made"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if moved, err := f.KeepMade(t.Context(), tree, first); !moved || err != nil {
			t.Fatal(moved, err)
		}
		f.End(t.Context(), true)
		dir := filepath.Join(h.Dir, f.name)
		if made, ok, err := readMade(dir); !ok || err != nil || !slices.Equal(made, []string{"made"}) {
			t.Fatal(made, ok, err)
		}
		if f, err := h.Fill(t.Context(), first); f != nil || err != nil {
			t.Fatalf("filled twice: %v", err)
		}
		file, old := filepath.Join(dir, madeFile), time.Now().Add(-Life)
		if age == "day" {
			err = os.Chtimes(file, old, old)
		} else {
			err = os.WriteFile(file, []byte("another start\x00made"), 0o600)
		}
		if _, ok, failed := readMade(dir); ok || err != nil || failed != nil {
			t.Error(age, ok, err, failed)
		}
	}
}

// Files that a copy would lack, or share, are not kept.
func TestNotKept(t *testing.T) {
	t.Parallel()
	h, first, _, _ := homes(t)
	for name, mess := range map[string]func(dir string) error{
		"a repository": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "deps", "a", ".git"), 0o700) },
		"a submodule":  func(dir string) error { return os.MkdirAll(filepath.Join(dir, "sub", "file"), 0o700) },
		"a hard link":  func(dir string) error { return os.Link(filepath.Join(dir, "go.mod"), filepath.Join(dir, "deps")) },
	} {
		tree := t.TempDir()
		if err := os.WriteFile(filepath.Join(tree, "go.mod"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tracked, err := diff.List(t.Context(), h.Repo.Git(), first)
		if err != nil {
			t.Fatal(err)
		}
		tracked["sub"] = diff.Entry{Mode: "160000"}
		if _, err := listMade(tree, tracked); err != nil {
			t.Errorf("nothing: %v", err)
		}
		if err := mess(tree); err != nil {
			t.Fatal(err)
		}
		if made, err := listMade(tree, tracked); err == nil {
			t.Errorf("%s: %q", name, made)
		}
	}
}

type keyer string

func (k keyer) HomeKey(context.Context) (string, error) { return string(k), nil }

// Sandboxes that cannot share a home have separate ones; some have none.
func TestHomeKeys(t *testing.T) {
	t.Parallel()
	h, first, _, _ := homes(t)
	h.Keyer = keyer("image 1")
	if !filled(t, h, first, 1) {
		t.Error("not filled")
	}
	for key, want := range map[string]bool{"image 1": true, "image 2": false, "": false} {
		h.Keyer = keyer(key)
		w := h.Use(t.Context(), first, "", false)
		if (w != nil) != want {
			t.Errorf("%q has the home %+v", key, w)
		}
		if w != nil {
			w.Done()
		}
	}
	h.Keyer = keyer("")
	if f, err := h.Fill(t.Context(), first); f != nil || err != nil {
		t.Errorf("filled without a key: %v, %v", f, err)
	}
}

// An unfinished home, for example after a crash, is never used, and is removed.
func TestHomesUnfinished(t *testing.T) {
	t.Parallel()
	h, first, _, module := homes(t)
	f, err := h.Fill(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.Fill(t.Context(), first); again != nil || err != nil {
		t.Errorf("filled twice at once: %v", err)
	}
	if err := f.lock.Close(); err != nil { // like the end of the process
		t.Fatal(err)
	}
	if w := h.Use(t.Context(), first, "", false); w != nil {
		t.Errorf("half a home is used: %s", w.dir)
	}
	if !filled(t, h, module, 1) {
		t.Error("not filled")
	}
	if _, err := os.Stat(f.dir); err == nil {
		t.Error("half a home stays")
	}
	if !filled(t, h, first, 2<<20) {
		t.Error("not filled")
	}
	if w := h.Use(t.Context(), first, "", false); w != nil {
		t.Errorf("a home above the limit is kept: %s", w.dir)
	}
	f, err = h.Fill(t.Context(), first)
	if err != nil || f == nil {
		t.Fatal(f, err)
	}
	f.End(t.Context(), false)
	if w := h.Use(t.Context(), first, "", false); w != nil {
		t.Errorf("the home of a failed setup is kept: %s", w.dir)
	}
	if f, err := (&Store{Dir: h.Dir, Repo: h.Repo}).Fill(t.Context(), first); f != nil || err != nil {
		t.Errorf("a home although none may be kept: %v", err)
	}
}

// When the base moves, the next home begins with the caches of the last one, and with nothing else of it.
func TestHomesBeginWithCaches(t *testing.T) {
	t.Parallel()
	const cache, other = "go/pkg/mod/cache/x", ".config/x"
	for name, c := range map[string]struct {
		size int // size of the cache's content
		next func(*Store)
		want bool
	}{
		"as before":          {100, func(*Store) {}, true},
		"another setup":      {100, func(h *Store) { h.For = "another" }, false},
		"too large":          {600 << 10, func(*Store) {}, false},
		"a sandbox's own":    {100, func(h *Store) { h.Keyer = keyer("any") }, false},
		"a pipe among files": {100, func(h *Store) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, first, _, module := homes(t)
			f, err := h.Fill(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			home := filepath.Join(f.dir, homeFolder)
			for file, size := range map[string]int{cache: c.size, other: 1} {
				at := filepath.Join(home, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, make([]byte, size), 0o400)); err != nil {
					t.Fatal(err)
				}
			}
			if name == "a pipe among files" {
				if err := unix.Mkfifo(filepath.Join(home, "go/pkg/mod/pipe"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f.End(t.Context(), true)
			c.next(h)
			next, err := h.Fill(t.Context(), module)
			if err != nil || next == nil {
				t.Fatal(next, err)
			}
			defer next.End(t.Context(), false)
			next.Begin(t.Context())
			info, err := os.Stat(filepath.Join(next.dir, homeFolder, cache))
			if (err == nil) != c.want || err == nil && info.Size() != int64(c.size) {
				t.Errorf("the cache: %v", err)
			}
			entries, err := os.ReadDir(filepath.Join(next.dir, homeFolder))
			if err != nil || len(entries) > 1 || !c.want && len(entries) > 0 {
				t.Errorf("the home has %v, %v", entries, err)
			}
			if _, err := os.Stat(filepath.Join(h.Dir, f.name, homeFolder, cache)); err != nil {
				t.Errorf("the last home has changed: %v", err)
			}
		})
	}
}
