package workspace

import (
	"crypto/rand"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/worktree"
)

// Over a layer, the changed files are known from the entries outside the layer, and an import saves all of them.
func TestFilesThatMayHaveChangedOverLayer(t *testing.T) {
	t.Parallel()
	files := []string{"a", "sub/b", "sub/deep/c", "sub/other/d", "z/e"}
	const below = "sub/b sub/deep/c sub/other/d" // the files of a folder into which something was copied
	for name, c := range map[string]struct{ do, may, saved string }{
		"nothing":                      {`cat a sub/b >/dev/null; ls -R >/dev/null`, "", ""},
		"content":                      {`echo more >>sub/b`, below, "M sub/b"},
		"mode":                         {`chmod 755 sub/b`, below, "M sub/b"},
		"removed":                      {`rm sub/deep/c`, below, "D sub/deep/c"},
		"a folder removed":             {`rm -r sub/deep`, below, "D sub/deep/c"},
		"a folder renamed":             {`mv sub/deep sub/deeper`, below, "D sub/deep/c A sub/deeper/c"},
		"an empty folder in its place": {`rm -r sub/deep; mkdir sub/deep`, below, "D sub/deep/c"},
		"a new one in its place":       {`rm -r sub/deep; mkdir sub/deep; echo x >sub/deep/new`, below, "D sub/deep/c A sub/deep/new"},
		"another file":                 {`echo x >sub/deep/new`, below, "A sub/deep/new"},
		"at the top":                   {`echo x >new`, "", "A new"},
		"made, committed and removed": {
			`echo x >z/new; git add .; git -c user.name=a -c user.email=a@b.example commit -qm x; rm z/new`, "z/e", "D z/new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, base := committed(t, worktree.Options{Layers: 1 << 30, LayerMinFiles: 1}, files...)
			config := &Config{Repo: repo, Sandboxes: native.New(native.Config{}), Log: slog.New(slog.DiscardHandler)}
			open := func(key string, detached bool) *Workspace {
				spec := worktree.Spec{Run: key + rand.Text(), Key: key, Base: base, Detached: detached, Private: true, Layers: config.Layers()}
				if spec.FilterBase = base.Commit; !detached {
					spec.Branch, spec.FilterBase = "ralph/"+key, ""
				}
				tree, err := repo.Add(t.Context(), spec)
				if err != nil || !tree.Layered() {
					t.Fatal(tree, err)
				}
				w := config.New(spec.Run, tree, nil, nil)
				if detached {
					w.Dir = tree.Dir()
				}
				if err := w.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = w.CloseSandbox(t.Context()) })
				if exit, err := w.Sandbox.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-ec", c.do}}); err != nil || !exit.OK() {
					t.Fatal(exit, err)
				}
				return w
			}
			w := open("look", true)
			may, known := w.mayHaveChanged(t.Context())
			got := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return may == nil || !may(f) })
			if strings.Join(got, " ") != c.may || !known || (may == nil) != (name == "nothing") {
				t.Errorf("may have changed: %q (known: %v), want %q", got, known, c.may)
			}
			w = open("take", false)
			if err := w.Import(t.Context()); err != nil {
				t.Fatal(err)
			}
			saved := ""
			if w.Last.WIP != "" {
				out, err := repo.Git().Output(t.Context(), "diff-tree", "-r", "--no-renames", "--name-status", w.Last.WIP+"^1", w.Last.WIP)
				if err != nil {
					t.Fatal(err)
				}
				saved = strings.Join(strings.Fields(out), " ")
			}
			if saved != c.saved {
				t.Errorf("saved %q, want %q", saved, c.saved)
			}
		})
	}
}

// Files that a newer commit has in addition to its layer leave no trace when they are removed.
func TestFilesBesidesTheLayerMayHaveGone(t *testing.T) {
	t.Parallel()
	repo, base := committed(t, worktree.Options{Layers: 1 << 30, LayerMinFiles: 1}, "a", "sub/b")
	config := &Config{Repo: repo, Sandboxes: native.New(native.Config{}), Log: slog.New(slog.DiscardHandler)}
	add := func(key string) *worktree.Tree {
		spec := worktree.Spec{Run: key + rand.Text(), Key: key, Base: base, FilterBase: base.Commit, Detached: true, Private: true, Layers: config.Layers()}
		tree, err := repo.Add(t.Context(), spec)
		if err != nil || !tree.Layered() {
			t.Fatal(tree, err)
		}
		return tree
	}
	add("first") // makes the layer
	blob, err := repo.Git().Output(t.Context(), "rev-parse", base.Commit+":a")
	if err != nil {
		t.Fatal(err)
	}
	base.Commit = newer(t, repo, base.Commit, blob, "top", "new/file", "new/deep/file", "sub/c")
	for name, c := range map[string]struct{ do, may string }{
		"nothing":         {`cat top new/file`, ""},
		"at the top":      {`rm top`, "new/deep/file new/file top"},
		"a folder":        {`rm -r new`, "new/deep/file new/file top"},
		"further down":    {`rm new/deep/file`, "new/deep/file"},
		"one in a folder": {`rm sub/c`, "new/deep/file new/file sub/b sub/c top"}, // the kernel notes it at the top, too
	} {
		w := config.New("look-"+rand.Text(), add("look"+rand.Text()), nil, nil)
		w.Dir = w.Tree.Dir()
		if err := w.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if exit, err := w.Sandbox.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-ec", c.do}}); err != nil || !exit.OK() {
			t.Fatal(exit, err)
		}
		may, known := w.mayHaveChanged(t.Context())
		got := slices.DeleteFunc([]string{"a", "new/deep/file", "new/file", "sub/b", "sub/c", "top"}, func(f string) bool { return may == nil || !may(f) })
		if strings.Join(got, " ") != c.may || !known {
			t.Errorf("%s: may have changed: %q (known: %v), want %q", name, got, known, c.may)
		}
		_ = w.CloseSandbox(t.Context())
	}
}

// newer makes a commit with more files.
func newer(t *testing.T, repo *worktree.Repo, parent, blob string, files ...string) string {
	t.Helper()
	script := `export GIT_INDEX_FILE="$1"; git read-tree "$2"; shift 2; blob=$1; parent=$2; shift 2
		for f; do git update-index --add --cacheinfo "100644,$blob,$f"; done
		git -c user.name=a -c user.email=a@b.example commit-tree -p "$parent" -m newer "$(git write-tree)"`
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-ec", script, "sh", filepath.Join(t.TempDir(), "index"), parent, blob, parent}, files...)...)
	cmd.Dir = repo.Dir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}
