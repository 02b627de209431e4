package native_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

func TestRefusesToOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		spec sandboxes.Spec
		want string
	}{
		"no run":   {sandboxes.Spec{Worktree: dir}, "the run has no id"},
		"relative": {sandboxes.Spec{Run: "r", Worktree: "here"}, `worktree "here" is not a clean absolute path`},
		"file":     {sandboxes.Spec{Run: "r", Worktree: file}, "worktree DIR/file is not a folder"},
		"missing":  {sandboxes.Spec{Run: "r", Worktree: dir + "/gone"}, "worktree: stat DIR/gone: no such file or directory"},
		"root":     {sandboxes.Spec{Run: "r", Worktree: "/"}, "worktree / is in a place that the sandbox needs for itself"},
		"no .git": {
			sandboxes.Spec{Run: "r", Worktree: dir, GitDir: dir}, "worktree DIR has no .git file: it is not a linked worktree",
		},
		"not a socket": {sandboxes.Spec{Run: "r", Worktree: dir, Egress: file}, "egress socket DIR/file is not a socket"},
		"mount of all": {
			sandboxes.Spec{Run: "r", Worktree: dir, Mounts: []sandboxes.Mount{{Host: "/", Inside: "/host"}}},
			"mount /: sandbox cannot do this: it would open the sandbox; name the file or folder below it that is needed",
		},
		"mount of a device": {
			sandboxes.Spec{Run: "r", Worktree: dir, Mounts: []sandboxes.Mount{{Host: "/dev/null", Inside: "/host"}}},
			"mount /dev/null: sandbox cannot do this: it would open the sandbox; name the file or folder below it that is needed",
		},
		"mount over /proc": {
			sandboxes.Spec{Run: "r", Worktree: dir, Mounts: []sandboxes.Mount{{Host: "/usr", Inside: "/proc/x"}}},
			"mount /usr: the sandbox needs /proc/x for itself; choose another place",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box, err := native.New(native.Config{}).Open(t.Context(), tt.spec)
			if err == nil {
				_ = box.Close(context.WithoutCancel(t.Context()))
				t.Fatal("it opens")
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); got != "open sandbox native: "+tt.want {
				t.Errorf("error is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMountsAndWhoOneIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"worktree", "cache", "tool", "worktree/deep"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "tool", "t"), []byte("#!/bin/sh\necho tool\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "mounts-" + dir, Worktree: filepath.Join(dir, "worktree"),
		Mounts: []sandboxes.Mount{
			{Host: filepath.Join(dir, "cache"), Inside: "/home/agent/.cache"},
			{Host: filepath.Join(dir, "tool"), Inside: filepath.Join(dir, "worktree", "deep"), ReadOnly: true},
			{Host: filepath.Join(dir, "tool", "t"), Inside: "/usr/local/bin/../../../opt/t", ReadOnly: true},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{"sh", "-c", `
		test "$(id -u)" != 0 && id -un && deep/t && /opt/t && echo kept >~/.cache/kept && echo here >here && hostname
		test -O here && test -w "$HOME" && ! touch deep/no 2>/dev/null && echo /dev/stdout >/dev/stdout; ls -A "$HOME"`}})
	if err != nil || !exit.OK() {
		t.Errorf("%+v, %v, %s", exit, err, &out)
	}
	if want := "agent\ntool\ntool\nralph\n/dev/stdout\n.cache\n"; out.String() != want {
		t.Errorf("it says %q, want %q", &out, want)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{"cache/kept": "kept\n", "worktree/here": "here\n"} {
		path := filepath.Join(dir, name)
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		// Files created inside belong to the worktree's owner.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		_ = f.Close()
		if mine, theirs := owner(t, dir), owner(t, path); mine != theirs {
			t.Errorf("%s belongs to %d, not to %d", name, theirs, mine)
		}
	}
}

func TestPathIsWhatCanBeSeen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"worktree", "tools"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tools := filepath.Join(dir, "tools")
	host := strings.Join([]string{"/usr/games", tools, "", ".", dir + "/worktree", "/home/somebody/bin", "/bin", "/usr/games"}, ":")
	t.Setenv("PATH", host)
	box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "path-" + dir, Worktree: filepath.Join(dir, "worktree"),
		Mounts: []sandboxes.Mount{{Host: tools, Inside: tools, ReadOnly: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", `printf %s "$PATH"`}, Stdout: &out})
	if want := "/usr/games:" + tools + ":/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin"; err != nil || out.String() != want {
		t.Errorf("PATH is %s, want %s (%+v, %v)", &out, want, exit, err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// No thread of the init process keeps privileges. The bounding set of the thread that starts commands is that of the
// commands, which the escape suite checks.
func TestInitHasNoPrivileges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := "privileges-" + dir
	box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{Run: run, Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close(context.WithoutCancel(t.Context())) }()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range lines {
		if text, err := os.ReadFile(name); err != nil || !strings.HasSuffix(string(text), "\x00native\x00"+run+"\x00") {
			continue
		}
		threads, err := filepath.Glob(filepath.Join(filepath.Dir(name), "task", "*", "status"))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil {
				continue // the thread has ended
			}
			seen++
			if !strings.Contains(string(text), "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t") ||
				!strings.Contains(string(text), "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n") {
				t.Errorf("%s:\n%s", thread, text)
			}
		}
	}
	if seen < 2 {
		t.Errorf("%d threads were seen", seen)
	}
}

// A limit of zero means the default, as with the other providers.
func TestLimitsHaveDefaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{
		Run: "limits-" + dir, Worktree: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "echo x >$HOME/f; (true); exit 7"}})
	if err != nil || exit.Code != 7 {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
