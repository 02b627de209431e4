package native_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// lowered is a lower folder with two worktrees over it.
type lowered struct {
	*testing.T
	lower string
	specs [2]sandboxes.Spec
	state string // look's result at the start
}

func newLowered(t *testing.T) *lowered {
	t.Helper()
	at := t.TempDir()
	l := &lowered{T: t, lower: filepath.Join(at, "lower")}
	t.Cleanup(func() { _ = disk.RemoveAll(filepath.Join(at, "0")); _ = disk.RemoveAll(filepath.Join(at, "1")) })
	for name, text := range map[string]string{
		"folder/deep/a": "a\n", "folder/b": "b\n", "c": "c\n", "gone": "x\n", "old/x": "x\n", "pair": "pair\n",
	} {
		path := filepath.Join(l.lower, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("c", filepath.Join(l.lower, "link")), os.Link(filepath.Join(l.lower, "pair"), filepath.Join(l.lower, "twin"))); err != nil {
		t.Fatal(err)
	}
	for i := range l.specs {
		private, upper := filepath.Join(at, "private"+string(rune('0'+i))), filepath.Join(at, string(rune('0'+i)), "files")
		if err := errors.Join(os.MkdirAll(upper, 0o700), os.Mkdir(private, 0o700), os.WriteFile(filepath.Join(upper, ".git"), []byte("gitdir: x\n"), 0o600),
			os.WriteFile(filepath.Join(upper, "own"), []byte("own\n"), 0o600), unix.Mknod(filepath.Join(upper, "gone"), unix.S_IFCHR, 0)); err != nil {
			t.Fatal(err)
		}
		l.specs[i] = sandboxes.Spec{Run: "layer-" + rand.Text(), Worktree: upper, Lower: l.lower, GitDir: private}
	}
	l.specs[1].Workdir = "/worktree"
	l.state = l.look()
	return l
}

// look returns everything that is visible of the lower folder.
func (l *lowered) look() string {
	l.Helper()
	var all strings.Builder
	err := filepath.WalkDir(l.lower, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		err = unix.Lstat(path, &st)
		text, _ := os.ReadFile(path) // fails for folders
		names := make([]byte, 1<<10)
		n, _ := unix.Llistxattr(path, names)
		all.WriteString(strings.Join([]string{path, string(text), string(names[:max(n, 0)])}, " "))
		all.WriteString(strings.Join([]string{"", fs.FileMode(st.Mode).String(), string(rune('0' + st.Nlink))}, " ") + "\n")
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
	return all.String()
}

func (l *lowered) open(i int) sandboxes.Sandbox {
	l.Helper()
	box, err := native.New(native.Config{}).Open(l.Context(), l.specs[i])
	if err != nil {
		l.Fatal(err)
	}
	return box
}

// sh runs a script in a sandbox on one of the worktrees.
func (l *lowered) sh(i int, script string) string {
	l.Helper()
	box := l.open(i)
	defer func() {
		if err := box.Close(context.WithoutCancel(l.Context())); err != nil {
			l.Error(err)
		}
	}()
	return shIn(l.T, box, script)
}

func shIn(t *testing.T, box sandboxes.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &out})
	if err != nil || !exit.OK() {
		t.Fatalf("%v %v\n%s", exit, err, &out)
	}
	return out.String()
}

// A worktree shows the lower folder with its own changes, and keeps these. Neither the lower folder nor another worktree
// over it changes.
func TestLower(t *testing.T) {
	t.Parallel()
	l := newLowered(t)
	const everything = "find . -mindepth 1 ! -name .git -printf '%P %y\n' | sort; find . -type f ! -name .git | sort | xargs cat"
	const first = "c f\nfolder d\nfolder/b f\nfolder/deep d\nfolder/deep/a f\nlink l\nold d\nold/x f\nown f\npair f\ntwin f\nc\nb\na\nx\nown\npair\npair\n"
	if got := l.sh(0, everything); got != first {
		t.Errorf("the tree is\n%s", got)
	}
	l.sh(0, `set -e
		rm -r old; mkdir old; echo new >old/y
		mv folder moved; echo more >>moved/deep/a; chmod 600 moved/b
		echo changed >link; ln c hard; echo twice >>hard
		rm twin; echo alone >pair; echo back >gone; rm own; echo z >z; mv z zz
		cat .git | grep -q private0; test -O c && test -O zz`)
	const then = "c f\ngone f\nhard f\nlink l\nmoved d\nmoved/b f\nmoved/deep d\nmoved/deep/a f\nold d\nold/y f\npair f\nzz f\n" +
		"changed\ntwice\nback\nchanged\ntwice\nb\na\nmore\nnew\nalone\nz\n"
	if got := l.sh(0, everything); got != then {
		t.Errorf("after a second start the tree is\n%s", got)
	}
	if got := l.sh(1, everything); got != first {
		t.Errorf("the other tree is\n%s", got)
	}
	if now := l.look(); now != l.state {
		t.Errorf("the lower folder was\n%s\nand is\n%s", l.state, now)
	}
	if got := l.sh(0, "ls -d /.lower /.upper 2>&1 | grep -c cannot; grep -c ' overlay ' /proc/self/mounts; grep -c "+filepath.Dir(l.lower)+"/lower /proc/self/mountinfo; cd ..; ls -A"); got != "2\n1\n0\nfiles\n" {
		t.Errorf("seen inside: %q", got)
	}
}

// Commands see the worktree's own files at Changes, and cannot write there.
func TestChanges(t *testing.T) {
	t.Parallel()
	l := newLowered(t)
	box := l.open(0)
	defer func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	changes := box.(sandboxes.Differ).Changes()
	got := shIn(t, box, `set -e
		rm c; echo more >>folder/b; rm -r old; mkdir old; echo x >>own
		cd `+changes+`; find . -mindepth 1 -printf '%P %y\n' | sort; cat folder/b own
		for try in "touch new" "rm own" "chmod 700 own" "mount -o remount,bind,rw $PWD" "umount $PWD"; do
			if $try 2>/dev/null; then echo "$try has worked"; fi
		done`)
	if want := ".git f\nc c\nfolder d\nfolder/b f\ngone c\nold d\nown f\nb\nmore\nown\nx\n"; got != want {
		t.Errorf("in %s are\n%s", changes, got)
	}
	if plain, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{Run: "plain-" + l.specs[0].Run, Worktree: t.TempDir()}); err != nil {
		t.Error(err)
	} else if got := plain.(sandboxes.Differ).Changes(); got != "" || plain.Close(context.WithoutCancel(t.Context())) != nil {
		t.Errorf("without a lower folder there are changes in %q", got)
	}
}

// The kernel would let two sandboxes use one upper folder.
func TestOneSandboxForEachTree(t *testing.T) {
	t.Parallel()
	l := newLowered(t)
	box := l.open(0)
	again := l.specs[0]
	again.Run += "-again"
	if second, err := native.New(native.Config{}).Open(t.Context(), again); err == nil || !strings.Contains(err.Error(), "another sandbox is using it") {
		t.Errorf("the second sandbox: %v, %v", second, err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	l.sh(0, "true")
}

// A killed sandbox leaves a worktree that another sandbox can open, and that can be removed.
func TestLowerAfterKill(t *testing.T) {
	t.Parallel()
	l := newLowered(t)
	p := native.New(native.Config{})
	box := l.open(0)
	shIn(t, box, "rm -r folder; echo kept >c; mkdir closed; echo x >closed/x; chmod 0 closed")
	if err := p.Reap(t.Context(), l.specs[0].Run); err != nil { // as after kill -9
		t.Fatal(err)
	}
	_ = box.Close(t.Context())
	if got := l.sh(0, "cat c; ls"); got != "kept\nc\nclosed\nlink\nold\nown\npair\ntwin\n" {
		t.Errorf("the tree is %q", got)
	}
	tree := filepath.Dir(l.specs[0].Worktree)
	if err := disk.RemoveAll(tree); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(tree); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", tree, err)
	}
	if now := l.look(); now != l.state {
		t.Errorf("the lower folder was\n%s\nand is\n%s", l.state, now)
	}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	p, dir := native.New(native.Config{}), t.TempDir()
	for range 2 {
		if err := p.Layers(t.Context(), dir); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for range 2 {
		if err := p.Layers(t.Context(), "/sys"); err == nil {
			t.Error("there are layers where nothing can be written")
		}
	}
}

func TestLowerIsRefused(t *testing.T) {
	t.Parallel()
	l := newLowered(t)
	for name, change := range map[string]func(*sandboxes.Spec){
		"missing":  func(s *sandboxes.Spec) { s.Lower += "-missing" },
		"relative": func(s *sandboxes.Spec) { s.Lower = "lower" },
		"a file":   func(s *sandboxes.Spec) { s.Lower += "/c" },
		"reserved": func(s *sandboxes.Spec) { s.Lower = "/proc" },
		"a colon": func(s *sandboxes.Spec) {
			s.Worktree += ":x"
			if err := os.Mkdir(s.Worktree, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		spec := l.specs[1]
		change(&spec)
		if box, err := native.New(native.Config{}).Open(t.Context(), spec); err == nil {
			t.Errorf("%s: %v", name, errors.Join(errors.New("it is accepted"), box.Close(t.Context())))
		}
	}
}
