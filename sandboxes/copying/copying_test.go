package copying

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

// engine is a provider with disks. The root of its sandboxes is a host folder that tar does not leave.
type engine struct {
	*sandboxes.None
	root string
	got  *sandboxes.Spec
}

func newEngine(t *testing.T) *engine {
	return &engine{None: sandboxes.NewNone(sandboxes.NoneConfig{}), root: t.TempDir(), got: &sandboxes.Spec{}}
}

func (*engine) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.VM, Disk: true}
}

func (e *engine) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	*e.got = spec
	inner, err := e.None.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	box := &rooted{inner, e.root}
	for dir := range spec.Disk.Folders {
		err = errors.Join(err, os.MkdirAll(filepath.Join(e.root, dir), 0o755))
	}
	if err == nil {
		err = spec.Disk.Fill(ctx, box)
	}
	if err != nil {
		return nil, errors.Join(err, inner.Close(ctx))
	}
	return box, nil
}

type rooted struct {
	sandboxes.Sandbox
	root string
}

func (r *rooted) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	cmd.Argv = slices.Clone(cmd.Argv)
	if i := slices.Index(cmd.Argv, "-C"); i > 0 {
		cmd.Argv[i+1] = filepath.Join(r.root, cmd.Argv[i+1])
	}
	return r.Sandbox.Exec(ctx, cmd)
}

// tree creates files by path; "-> x" is a link, "folder" a folder, "pipe" a named pipe.
func tree(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch text := files[name]; {
		case text == "folder":
			err = errors.Join(err, os.MkdirAll(path, 0o755))
		case text == "pipe":
			err = errors.Join(err, unix.Mkfifo(path, 0o644))
		case strings.HasPrefix(text, "-> "):
			err = errors.Join(err, os.Symlink(text[3:], path))
		default:
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// content is the inverse of tree, without non-empty folders.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		switch {
		case d.IsDir():
			entries, err := os.ReadDir(path)
			if len(entries) == 0 {
				got[name] = "folder"
			}
			return err
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			got[name] = "-> " + target
			return err
		case d.Type().IsRegular():
			text, err := os.ReadFile(path)
			got[name] = string(text)
			return err
		}
		got[name] = d.Type().String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestOpenCopiesEverything(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long name ü/", 30) + "file"
	worktree := tree(t, t.TempDir(), map[string]string{
		".git": "gitdir: elsewhere", "a": "one", "dir/b": "two", "empty": "folder", "sub/.git/config": "nested", "sub/c": "", "in": "-> dir/b",
		"out": "-> /etc/passwd", "up": "-> ../x", "pipe": "pipe", long: "deep",
	})
	if err := os.Chmod(filepath.Join(worktree, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	repository := tree(t, t.TempDir(), map[string]string{
		"HEAD": "ref", "objects/aa/0123": "own", "objects/info/alternates": "/user/objects", "objects/pack": "folder", "refs/heads/main": "1",
	})
	objects := tree(t, t.TempDir(), map[string]string{
		"bb/4567": "borrowed", "pack/pack-1.pack": "p", "pack/pack-1.idx": "i", "pack/multi-pack-index": "no", "pack/tmp_pack_1": "no",
		"info/packs": "no", "aa/0123": "own", "bb/tmp_obj_1": "no",
	})
	tools := tree(t, t.TempDir(), map[string]string{"bin/tool": "tool", "file": "text"})
	e := newEngine(t)
	p := Wrap(e)
	if c := p.Capabilities(); c.Files != sandboxes.Copy || c.Isolation != sandboxes.VM {
		t.Errorf("capabilities %+v", c)
	}
	if _, ok := sandboxes.As[sandboxes.Reaper](p); !ok {
		t.Error("the wrapped provider is no Reaper")
	}
	box, err := p.Open(t.Context(), sandboxes.Spec{
		Run: "copy", Worktree: worktree, GitDir: repository, Objects: []string{objects}, Mounts: []sandboxes.Mount{
			{Host: tools, Inside: "/tools", ReadOnly: true},
			{Host: filepath.Join(tools, "file"), Inside: worktree + "/dir/mounted", ReadOnly: true},
			{Host: filepath.Join(tools, "file"), Inside: "/srv/x/renamed", ReadOnly: true},
			{Host: t.TempDir(), Inside: "/artefacts", Exclusive: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"/a": "one", "/dir/b": "two", "/empty": "folder", "/sub/c": "", "/in": "-> dir/b", "/out": "-> /etc/passwd", "/up": "-> ../x",
		"/" + long: "deep", "/dir/mounted": "text", "/.git": "folder",
	}
	got := content(t, e.root)
	for name, text := range want {
		if g, ok := got[worktree[1:]+name]; !ok || g != text {
			t.Errorf("%s inside is %q, %v; want %q", name, g, ok, text)
		}
		delete(got, worktree[1:]+name)
	}
	for name, text := range map[string]string{
		repository + "/HEAD": "ref", repository + "/objects/aa/0123": "own", repository + "/refs/heads/main": "1", repository + "/objects/bb/4567": "borrowed",
		repository + "/objects/pack/pack-1.pack": "p", repository + "/objects/pack/pack-1.idx": "i", repository + "/objects/info": "folder",
		"/tools/bin/tool": "tool", "/tools/file": "text", "/srv/x/renamed": "text", "/artefacts": "folder",
	} {
		if g, ok := got[name[1:]]; !ok || g != text {
			t.Errorf("%s inside is %q, %v; want %q", name, g, ok, text)
		}
		delete(got, name[1:])
	}
	if len(got) > 0 {
		t.Errorf("inside there is more: %q", got)
	}
	for name, mode := range map[string]fs.FileMode{worktree + "/a": 0o755, "/tools/file": 0o444} {
		if info, err := os.Stat(filepath.Join(e.root, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if e.got.GitDir != "" || e.got.Objects != nil || e.got.Mounts != nil {
		t.Errorf("the inner provider is shown %+v", e.got)
	}
	if got := slices.Sorted(slices.Values(e.got.Disk.ReadOnly)); !slices.Equal(got, []string{"/srv/x", "/tools"}) {
		t.Errorf("read-only are %q", got)
	}
	names := e.got.Disk.Folders
	if names[worktree+"/.git"] != names[repository] || names[worktree] == "" || names["/artefacts"] == names["/tools"] || len(names) != 6 {
		t.Errorf("folders %q", names)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := tree(t, t.TempDir(), map[string]string{"file": ""})
	file := filepath.Join(dir, "file")
	for want, m := range map[string]sandboxes.Mount{
		"make the mount read-only":              {Host: dir, Inside: "/data"},
		"it cannot write to the host":           {Host: file, Inside: "/x/file", Exclusive: true},
		"choose a path inside a folder":         {Host: file, Inside: "/file", ReadOnly: true},
		"it does not exist on the host":         {Host: dir + "/none", Inside: "/x", ReadOnly: true},
		"it would open the sandbox":             {Host: "/proc", Inside: "/x", ReadOnly: true},
		`"x" is not a clean absolute path`:      {Host: dir, Inside: "x", ReadOnly: true},
		`"/a/../b" is not a clean absolute pat`: {Host: dir, Inside: "/a/../b", ReadOnly: true},
	} {
		_, err := Wrap(newEngine(t)).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: dir, Mounts: []sandboxes.Mount{m}})
		if err == nil || !strings.HasPrefix(err.Error(), "open sandbox none: mount ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
	_, err := Wrap(sandboxes.NewNone(sandboxes.NoneConfig{})).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: dir})
	if !errors.Is(err, sandboxes.ErrUnsupported) {
		t.Errorf("a provider without disks: %v", err)
	}
}

// A copy that fails in the middle is an error of Open, whichever side fails.
func TestFillFails(t *testing.T) {
	t.Parallel()
	worktree := tree(t, t.TempDir(), map[string]string{"a": strings.Repeat("x", 1<<20)})
	e := newEngine(t)
	tree(t, e.root, map[string]string{worktree[1:] + "/a/in/the/way": "x"})
	if _, err := Wrap(e).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: worktree}); err == nil || !strings.Contains(err.Error(), "copy files into the sandbox: tar inside ends with status 2") {
		t.Errorf("error is %v", err)
	}
	if os.Getuid() != 0 { // root can read every file
		if err := os.Chmod(filepath.Join(worktree, "a"), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := Wrap(newEngine(t)).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: worktree}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("error is %v", err)
		}
	}
	e = newEngine(t)
	e.None = sandboxes.NewNone(sandboxes.NoneConfig{Env: []string{"PATH=/nowhere"}})
	if _, err := Wrap(e).Open(t.Context(), sandboxes.Spec{Run: "r", Worktree: worktree}); err == nil || !strings.Contains(err.Error(), "the image has no tar") {
		t.Errorf("error is %v", err)
	}
}
