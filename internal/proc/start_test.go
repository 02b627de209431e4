package proc

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program(t, dir, "locked", "#!/bin/sh\n", 0o644)
	program(t, dir, "orphan", "#!/no/such/interpreter\n", 0o755)
	program(t, dir, "garbage", "\x7fELF nonsense", 0o755)
	tests := []struct {
		name string
		spec Spec
		is   error
		text string
	}{
		{"no program", Spec{}, nil, "could not start a process: no program is named"},
		{
			"not in PATH", Spec{Argv: []string{"agent"}, Env: []string{"PATH=/a:/b"}}, exec.ErrNotFound,
			"could not start agent: executable file not found in $PATH (PATH is /a:/b)",
		},
		{
			"no PATH", Spec{Argv: []string{"agent"}}, exec.ErrNotFound,
			"could not start agent: executable file not found in $PATH: its environment has no PATH",
		},
		{
			"relative PATH", Spec{Argv: []string{"orphan"}, Dir: dir, Env: []string{"PATH=.::" + "sub"}}, exec.ErrNotFound,
			"could not start orphan: executable file not found in $PATH (PATH is .::sub)",
		},
		{
			"a folder in PATH", Spec{Argv: []string{filepath.Base(dir)}, Env: []string{"PATH=" + filepath.Dir(dir)}},
			exec.ErrNotFound, "(PATH is ",
		},
		{
			"not executable", Spec{Argv: []string{"locked"}, Env: []string{"PATH=" + dir}}, fs.ErrPermission,
			"could not start locked: DIR/locked: permission denied",
		},
		{
			"path not executable", Spec{Argv: []string{dir + "/locked"}}, fs.ErrPermission,
			"could not start DIR/locked: DIR/locked: permission denied",
		},
		{
			"missing file", Spec{Argv: []string{"./nothing"}, Dir: dir}, fs.ErrNotExist,
			"could not start ./nothing: file does not exist",
		},
		{
			"missing folder", Spec{Argv: []string{"sh"}, Env: path(), Dir: dir + "/gone"}, fs.ErrNotExist,
			"could not start sh: its folder DIR/gone: no such file or directory",
		},
		{
			"missing folder, relative program", Spec{Argv: []string{"./sh"}, Dir: dir + "/gone"}, fs.ErrNotExist,
			"could not start ./sh: its folder DIR/gone: no such file or directory",
		},
		{
			"missing interpreter", Spec{Argv: []string{"./orphan"}, Dir: dir}, fs.ErrNotExist,
			"could not start ./orphan: ./orphan: its interpreter /no/such/interpreter is missing: no such file or directory",
		},
		{"not a program", Spec{Argv: []string{"./garbage"}, Dir: dir}, unix.ENOEXEC, "could not start ./garbage: ./garbage"},
		{
			"too long", Spec{Argv: []string{"sh", strings.Repeat("x", 4<<20)}, Env: path()}, unix.E2BIG,
			"argument list too long; pass long text on its standard input",
		},
		{
			"NUL in an argument", Spec{Argv: []string{"sh", "-c", "a\x00b"}}, nil,
			"could not start sh: argument 2 contains a NUL byte",
		},
		{
			"NUL in the environment", Spec{Argv: []string{"sh"}, Env: []string{"A=1", "B=x\x00C=y"}}, nil,
			`could not start sh: environment variable "B" contains a NUL byte`,
		},
		{"NUL in the mark", Spec{Argv: []string{"sh"}, Mark: "a\x00"}, nil, "mark contains a NUL byte"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Run(t.Context(), tt.spec)
			if !errors.Is(err, ErrStart) {
				t.Fatalf("error is %v, want ErrStart", err)
			}
			var start *StartError
			if !errors.As(err, &start) {
				t.Fatalf("error is a %T, want *StartError", err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %v does not wrap %v", err, tt.is)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); !strings.Contains(got, tt.text) {
				t.Errorf("error is %q, want %q", got, tt.text)
			}
		})
	}
}

func TestLookupUsesTheGivenPath(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	program(t, first, "tool", "no", 0o644) // not executable: skipped
	program(t, second, "tool", "#!/bin/sh\nexit 9\n", 0o755)
	got := run(t, Spec{Argv: []string{"tool"}, Env: []string{"PATH=/nowhere", "PATH=" + first + ":" + second}})
	if got.Code != 9 {
		t.Errorf("ended with %+v, want the tool's code 9", got)
	}
}

// A process's own lookups in PATH find no program in its working folder.
func TestPathOfChildren(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	program(t, dir, "tool", "#!/bin/sh\necho of the folder\n", 0o755)
	program(t, elsewhere, "tool", "#!/bin/sh\necho of PATH\n", 0o755)
	for path, want := range map[string]string{
		elsewhere: "of PATH", ".:" + elsewhere: "of PATH", ":" + elsewhere: "of PATH", elsewhere + "/none::" + elsewhere: "of PATH",
		"../" + filepath.Base(dir) + ":" + elsewhere: "of PATH", ".": "", "": "", ":": "",
	} {
		var out strings.Builder
		run(t, Spec{Argv: []string{"/bin/sh", "-c", `tool 2> /dev/null; true`}, Dir: dir, Env: []string{"PATH=" + path}, Stdout: &out})
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("with PATH=%s it has run the tool %q, want %q", path, got, want)
		}
	}
}
