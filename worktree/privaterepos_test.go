package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrivateInEveryKindOfRepository works one issue in repositories that are not plain.
func TestPrivateInEveryKindOfRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		dir   string
		setup func(f *fixture)
		check string // runs inside, before the agent works
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
			dir := test.dir
			if dir == "" {
				dir = "project"
			}
			f := fixtureAt(t, filepath.Join(realDir(t), dir))
			if test.setup != nil {
				test.setup(f)
			}
			workOne(f, test.check)
		})
	}
}

// workOne lets an agent commit and change something, and looks at what came back.
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
	got := f.handBack(in.tree)
	if got.Tip != tip || got.New != 1 {
		f.Errorf("handed back %+v, want %s", got, tip)
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
	folders, err := objectFolders(filepath.Join(dir, ".git", "objects"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, ".git", "objects"), filepath.Join(middle, ".git", "objects"), filepath.Join(far.dir, ".git", "objects")}
	if diff := cmp.Diff(want, folders); diff != "" {
		t.Error(diff)
	}
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

// TestPrivateFilters: a filter of the user's runs inside, where its program is; on the host it does not.
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
	got := f.handBack(in.tree)
	f.none(marker)
	if text := f.show(got.Tip, "new.rot"); text != "uryyb" {
		t.Errorf("committed %q", text)
	}
	if text := f.show(got.WIP, "undone.rot"); text != "hello" {
		t.Errorf("saved %q", text)
	}
	f.remove(in.tree)
}

func TestPrivateRebase(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh("echo b > b; git add b; git commit -qm work")
	f.commit(f.dir, "c", "c", "on main")
	tip, err := in.tree.Rebase(context.Background(), f.base())
	if err != nil {
		t.Fatal(err)
	}
	if out := in.sh("git status --porcelain; git rev-parse HEAD; git log --format=%s main..; ls b c"); out != tip+"\nwork\nb\nc" {
		t.Errorf("inside after the rebase: %s", out)
	}
	in.sh("git commit -q --allow-empty -m more")
	if got := f.handBack(in.tree); got.New != 1 || len(got.Commits) != 2 {
		t.Errorf("handed back %+v", got)
	}
	in.sh("echo conflict > c2; git add c2; git commit -qm c2")
	f.commit(f.dir, "c2", "other", "conflicts")
	before := in.sh("git rev-parse HEAD")
	if _, err := in.tree.Rebase(context.Background(), f.base()); !errors.Is(err, ErrConflict) {
		t.Errorf("rebase: %v", err)
	}
	if got := f.handBack(in.tree); got.Tip != before || got.WIP != "" {
		t.Errorf("after a conflict: %+v", got)
	}
	f.remove(in.tree)
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
	if got := f.handBack(in.tree); got.New != 1 || got.WIP != "" {
		t.Errorf("handed back %+v", got)
	}
	f.remove(in.tree)
}

// TestPrivateDropped goes back to the worktree's own git directory.
func TestPrivateDropped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	in.sh("git commit -q --allow-empty -m inside")
	again, err := in.tree.Private(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	in.repo = again
	if out := in.sh("git log --format=%s main.."); out != "inside" {
		t.Errorf("a new private repository has %q", out)
	}
	in.sh("git commit -q --allow-empty -m 'inside again'")
	if err := in.tree.DropPrivate(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(again.Dir); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
	f.commit(in.tree.Dir(), "x", "x", "in place")
	if got := f.handBack(in.tree); len(got.Commits) != 3 {
		t.Errorf("handed back %+v", got)
	}
	f.remove(in.tree)
}

// TestPrivateInterrupted stops a hand-back in the middle and does it again, in another process's place.
func TestPrivateInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	in := f.private("k", "r1")
	tip := in.sh("echo b > b; git add b; git commit -qm work; git rev-parse HEAD; echo undone > undone")
	// Remains of one that was killed: a quarantine, and an index with its lock.
	f.write(filepath.Join(f.state, "tmp", "quarantine-"+in.tree.name), "objects/pack/half.pack", "PACK")
	f.write(in.tree.record().GitDir, "index.ralph", "half")
	f.write(in.tree.record().GitDir, "index.ralph.lock", "")
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(stopped)
	if _, err := in.tree.HandBack(ctx); !errors.Is(err, stopped) {
		t.Errorf("interrupted: %v", err)
	}
	trees, err := f.open(Options{}).Trees(context.Background())
	if err != nil || len(trees) != 1 {
		t.Fatalf("trees %v, %v", trees, err)
	}
	if got := f.handBack(trees[0]); got.Tip != tip || got.WIP == "" {
		t.Errorf("handed back %+v", got)
	}
	f.remove(trees[0])
}

func TestPrivateBigFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.open(Options{Caps: Caps{Blob: 1 << 20}})
	in := f.private("k", "r1")
	in.sh("head -c 2000000 /dev/zero > big; echo x > small")
	got, err := in.tree.HandBack(context.Background())
	if err == nil || !strings.Contains(err.Error(), "big") || got.WIP == "" {
		t.Fatalf("handed back %+v, %v", got, err)
	}
	if names := f.git("diff", "--name-only", got.Tip, got.WIP); names != "small" {
		t.Errorf("saved %s", names)
	}
	if err := in.tree.Remove(context.Background()); !errors.Is(err, ErrKept) {
		t.Errorf("remove: %v", err)
	}
}

// Commits are read whole, so that a pack may bring none that are longer than those in files of their own.
func TestPrivateBigCommit(t *testing.T) {
	t.Parallel()
	for name, packed := range map[string]string{"loose": "true", "packed": "git repack -qad"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			in := f.private("k", "r1")
			in.sh("head -c 17000000 /dev/zero | tr '\\0' x | git commit -q --allow-empty -F -; " + packed)
			if got, err := in.tree.HandBack(context.Background()); err == nil || !strings.Contains(err.Error(), "too big") || got.Tip != in.tree.Start() {
				t.Errorf("handed back %+v, %v", got, err)
			}
		})
	}
}
