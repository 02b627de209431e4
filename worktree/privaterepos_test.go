package worktree

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/importer"
)

// TestPrivateInEveryKindOfRepository works one issue in unusual repositories.
func TestPrivateInEveryKindOfRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		dir   string
		setup func(f *fixture)
		check string // runs in the sandbox before the agent works
	}{
		"spaces and other letters in the path": {dir: "mein Projekt é \"x\" #1"},
		"sparse checkout": {setup: func(f *fixture) {
			f.commit(f.dir, "in/file", "x", "in")
			f.commit(f.dir, "out/file", "x", "out")
			f.git("sparse-checkout", "set", "in")
		}, check: "test ! -e out && test -e in/file"},
		"sparse index": {setup: func(f *fixture) {
			f.commit(f.dir, "in/file", "x", "in")
			f.commit(f.dir, "out/file", "x", "out")
			f.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
		}, check: "test ! -e out"},
		"split index":            {setup: func(f *fixture) { f.git("config", "core.splitIndex", "true") }},
		"untracked cache":        {setup: func(f *fixture) { f.git("config", "core.untrackedCache", "true") }},
		"index without checksum": {setup: func(f *fixture) { f.git("config", "feature.manyFiles", "true") }},
		"line ends": {setup: func(f *fixture) {
			f.git("config", "core.autocrlf", "true")
			f.write(f.dir, "crlf", "a\r\nb\r\n")
			f.git("add", "crlf")
			f.git("commit", "-qm", "crlf")
		}},
		"own excludes and attributes": {setup: func(f *fixture) {
			f.write(f.dir, ".git/info/exclude", "excluded\n")
			f.write(f.dir, "../excludes", "global\n")
			f.git("config", "core.excludesFile", filepath.Join(f.dir, "..", "excludes"))
		}, check: `touch excluded global; test -z "$(git status --porcelain)"`},
		"packed, with a commit graph": {setup: func(f *fixture) {
			f.git("gc", "-q")
			f.git("commit-graph", "write", "--reachable")
		}},
		"submodule": {setup: func(f *fixture) {
			sub := filepath.Join(realDir(f.T), "sub")
			f.sh("", "git", "init", "-q", sub)
			f.commit(sub, "file", "x", "sub")
			f.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "sub")
			f.git("commit", "-qm", "submodule")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixtureAt(t, filepath.Join(realDir(t), cmp.Or(test.dir, "project")))
			if test.setup != nil {
				test.setup(f)
			}
			workOne(f, test.check)
		})
	}
}

// workOne lets an agent commit and change files, and checks the import.
func workOne(f *fixture, check string) {
	f.Helper()
	in := f.private("k", "r1")
	if out := in.sh("git status --porcelain"); out != "" {
		f.Errorf("not clean inside: %s", out)
	}
	if check != "" {
		in.sh(check)
	}
	tip := in.sh("echo more >> a.txt; git add a.txt 2>/dev/null; git commit -qm work; git rev-parse HEAD; echo undone > undone")
	got := f.imported(in.tree)
	if got.Tip != tip || got.New != 1 {
		f.Errorf("imported %+v, want %s", got, tip)
	}
	if names := f.git("diff", "--name-only", got.Tip, got.WIP); names != "undone" {
		f.Errorf("saved %s", names)
	}
	f.remove(in.tree)
	if out, err := f.try(f.dir, "git", "fsck"); err != nil {
		f.Errorf("fsck: %s", out)
	}
}

func TestPrivateOfAShallowClone(t *testing.T) {
	t.Parallel()
	far := newFixture(t)
	far.commit(far.dir, "a.txt", "two\n", "second")
	far.commit(far.dir, "a.txt", "three\n", "third")
	f := &fixture{T: t, dir: filepath.Join(realDir(t), "clone"), state: filepath.Join(realDir(t), "state")}
	f.sh("", "git", "clone", "-q", "--depth=1", "file://"+far.dir, f.dir)
	f.open(Options{})
	workOne(f, "test $(git rev-list HEAD | wc -l) -eq 1; git fsck")
}

func TestPrivateOfABorrowingClone(t *testing.T) {
	t.Parallel()
	far := newFixture(t)
	middle, dir := filepath.Join(realDir(t), "middle"), filepath.Join(realDir(t), "clone")
	far.sh("", "git", "clone", "-q", "--shared", far.dir, middle)
	far.sh("", "git", "clone", "-q", "--shared", middle, dir)
	f := &fixture{T: t, dir: dir, state: filepath.Join(realDir(t), "state")}
	f.open(Options{})
	workOne(f, "")
}

func TestPrivateWithSHA256(t *testing.T) {
	t.Parallel()
	f := &fixture{T: t, dir: filepath.Join(realDir(t), "project"), state: filepath.Join(realDir(t), "state")}
	f.sh("", "git", "init", "-q", "-b", "main", "--object-format=sha256", f.dir)
	f.commit(f.dir, "a.txt", "one\n", "first")
	f.open(Options{})
	workOne(f, "")
}

// A user's filter runs in the sandbox, where its program is, and not on the host.
func TestPrivateFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	marker := filepath.Join(realDir(t), "marker")
	f.git("config", "filter.rot.clean", "tr a-z n-za-m")
	f.git("config", "filter.rot.smudge", "tr a-z n-za-m")
	f.git("config", "filter.rot.required", "true")
	f.commit(f.dir, ".gitattributes", "*.rot filter=rot\n", "attributes")
	f.commit(f.dir, "old.rot", "hello\n", "filtered")
	in := f.private("k", "r1")
	if text := in.sh("git status --porcelain; cat old.rot"); text != "hello" {
		t.Errorf("inside: %s", text)
	}
	in.sh("echo hello > new.rot; git add new.rot; git commit -qm work; echo hello > undone.rot")
	f.git("config", "filter.rot.clean", "touch "+marker+"; tr a-z n-za-m")
	got := f.imported(in.tree)
	f.none(marker)
	if text := f.show(got.Tip, "new.rot"); text != "uryyb" {
		t.Errorf("committed %q", text)
	}
	if text := f.show(got.WIP, "undone.rot"); text != "hello" {
		t.Errorf("saved %q", text)
	}
	f.remove(in.tree)
}

// After a rebase the folders are made anew at the new tip.
func TestPrivateRebase(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]string{"replayed": "echo b > b; git add b; git commit -qm work", "merged": sideMerge} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			in.sh(work + "; echo draft > draft")
			if _, err := in.tree.Rebase(t.Context(), f.base()); !errors.Is(err, ErrUnsaved) {
				t.Errorf("rebased what is not imported: %v", err)
			}
			f.imported(in.tree)
			f.commit(f.dir, "c", "c", "on main")
			tip, err := in.tree.Rebase(t.Context(), f.base())
			if err != nil {
				t.Fatal(err)
			}
			if f.show(tip, "c") != "c" || f.ref("refs/heads/ralph/k") != tip || in.tree.Spec().Base != f.base() {
				t.Errorf("rebased to %s onto %+v", tip, in.tree.Spec().Base)
			}
			if got := f.imported(in.tree); got.Tip != tip { // the old commit is still in the private repository
				t.Errorf("the old tip came back: %+v", got)
			}
			in.repo = f.use(in.tree)
			if out := in.sh("git status --porcelain; git rev-parse HEAD; cat c"); out != tip+"\nc" {
				t.Errorf("inside after the rebase: %s", out)
			}
			in.sh("git commit -q --allow-empty -m more")
			if got := f.imported(in.tree); got.New != 1 || got.Commits[len(got.Commits)-1].Subject != "more" {
				t.Errorf("imported %+v", got)
			}
			f.use(in.tree)
			before := in.sh("echo mine > c2; git add c2; git commit -qm c2; git rev-parse HEAD")
			f.imported(in.tree)
			f.commit(f.dir, "c2", "other", "conflicts")
			if _, err := in.tree.Rebase(t.Context(), f.base()); !errors.Is(err, ErrConflict) {
				t.Errorf("rebase: %v", err)
			}
			if got := f.imported(in.tree); got.Tip != before {
				t.Errorf("after a conflict: %+v", got)
			}
			f.remove(in.tree)
			f.clean()
		})
	}
}

func TestPrivateOfManyFiles(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 1000 {
		f.write(f.dir, filepath.Join("d"+strconv.Itoa(i%100), "f"+strconv.Itoa(i)), strconv.Itoa(i))
	}
	f.git("add", ".")
	f.git("commit", "-qm", "many")
	in := f.private("k", "r1")
	in.sh("for d in d*; do for n in 1 2 3; do echo x > $d/new$n; done; done; git add .; git commit -qm work")
	if got := f.imported(in.tree); got.New != 1 || got.WIP != "" {
		t.Errorf("imported %+v", got)
	}
	f.remove(in.tree)
}

// TestPrivateInterrupted interrupts an import and repeats it as another process would.
func TestPrivateInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	tip := in.sh("echo b > b; git add b; git commit -qm work; git rev-parse HEAD; echo undone > undone")
	// Leftovers of a killed import, on the host and in the sandbox.
	f.write(in.tree.quarantineDir(), "objects/pack/half.pack", "PACK")
	f.write(filepath.Join(in.repo.GitDir, "import.old"), "git/index", "half")
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stopped)
	if _, err := in.tree.Import(ctx, boxed(in.tree)); !errors.Is(err, stopped) {
		t.Errorf("interrupted: %v", err)
	}
	trees, err := f.open(Options{}).Trees(context.Background())
	if err != nil || len(trees) != 1 {
		t.Fatalf("trees %v, %v", trees, err)
	}
	if got := f.imported(trees[0]); got.Tip != tip || got.WIP == "" {
		t.Errorf("imported %+v", got)
	}
	f.remove(trees[0])
}

// Of too many new files the first are saved, with all changes of other files; the rest is listed and stays.
func TestManyNewFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ do, saved, named string }{
		"as many as allowed":     {"touch b c d", "b c d", ""},
		"too many":               {"touch b c d e 'f\ng'; echo more >>a.txt; rm .gitignore", ".gitignore a.txt b c d", "2 of 5 new files, which are too many: e and others"},
		"in a folder":            {"mkdir x; touch x/1 x/2 x/3 x/4; echo more >>a.txt", "a.txt x/1 x/2 x/3", "1 of 4 new files, which are too many: x/4 and"},
		"in a repository inside": {"git init -q in; touch in/1 in/2 in/3 in/4", "", "1 of 4 new files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.open(Options{Caps: importer.Caps{Files: 3}})
			in := f.private("k", "r1")
			in.sh(c.do)
			got, err := in.tree.Import(context.Background(), boxed(in.tree))
			if c.named == "" && err != nil || c.named != "" && (!importer.OnlyUnsaved(err) || !strings.Contains(err.Error(), c.named)) {
				t.Errorf("error %v", err)
			}
			saved := strings.ReplaceAll(f.git("diff", "--name-only", got.Tip, got.WIP), "\n", " ")
			if c.saved != "" && saved != c.saved || c.saved == "" && strings.Count(saved, "in/") != 3 {
				t.Errorf("saved %s", saved)
			}
			if err := in.tree.Remove(context.Background()); (c.named != "") != errors.Is(err, ErrUnsaved) {
				t.Errorf("remove: %v", err)
			}
		})
	}
}

func TestPrivateBigFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.open(Options{Caps: importer.Caps{Blob: 1 << 20}})
	in := f.private("k", "r1")
	in.sh("head -c 2000000 /dev/zero > big; echo x > small")
	got, err := in.tree.Import(context.Background(), boxed(in.tree))
	if err == nil || !strings.Contains(err.Error(), "big") || got.WIP == "" {
		t.Fatalf("imported %+v, %v", got, err)
	}
	if names := f.git("diff", "--name-only", got.Tip, got.WIP); names != "small" {
		t.Errorf("saved %s", names)
	}
	if err := in.tree.Remove(context.Background()); !errors.Is(err, ErrUnsaved) {
		t.Errorf("remove: %v", err)
	}
}

// Commits are read as a whole, so the size limit also holds for commits in a pack.
func TestPrivateBigCommit(t *testing.T) {
	t.Parallel()
	for name, packed := range map[string]string{"loose": "true", "packed": "git repack -qad"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			in.sh("head -c 17000000 /dev/zero | tr '\\0' x | git commit -q --allow-empty -F -; " + packed)
			if got, err := in.tree.Import(context.Background(), boxed(in.tree)); err == nil || !strings.Contains(err.Error(), "too big") || got.Tip != in.tree.Start() {
				t.Errorf("imported %+v, %v", got, err)
			}
		})
	}
}
