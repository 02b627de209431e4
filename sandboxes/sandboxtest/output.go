package sandboxtest

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ralph-pool/ralph/sandboxes"
)

var outputCases = map[string]func(*suite){
	"exit/codes": func(s *suite) {
		r := s.open()
		for _, code := range []int{0, 1, 7, 125, 126, 127, 128, 255} {
			cmd, _, _ := sh(`exit "$1"`, strconv.Itoa(code))
			r.expectExit(cmd, sandboxes.Exit{Code: code})
		}
	},
	"exit/signals": func(s *suite) {
		r := s.open()
		// Neither HUP nor INT: processes started by nohup, or in the background of a shell, ignore them.
		for name, code := range map[string]int{"KILL": 137, "TERM": 143, "ALRM": 142} {
			cmd, _, _ := sh(`kill -` + name + ` $$; sleep 100`)
			r.expectExit(cmd, sandboxes.Exit{Code: code, Signal: "SIG" + name})
		}
	},
	"argv/reaches the program unchanged": func(s *suite) {
		args := []string{
			"plain", "", "two words", " lead", "trail ", `"double"`, "'single'", "a\nb", "tab\t", "$HOME", "`id`",
			`back\slash`, "*", "~", "-n", "--", "ü€𝄞", "\x01\xff", ";exit 1", "",
		}
		got := s.open().text(`for a; do printf '%s\0' "$a"; done`, args...)
		if want := strings.Join(args, "\x00") + "\x00"; got != want {
			s.Errorf("got %q\nwant %q", got, want)
		}
	},
	"argv/a program that is missing": func(s *suite) {
		r := s.open()
		for _, name := range []string{"no-such-program-anywhere", "./no-such-file", "/no/such/file"} {
			_, err := r.Exec(s.boundedContext(), sandboxes.Command{Argv: []string{name}})
			var start *sandboxes.StartError
			if !errors.As(err, &start) {
				s.Fatalf("%s: error is %v, want a StartError", name, err)
			}
			if start.Argv0 != name {
				s.Errorf("StartError names %q, want %q", start.Argv0, name)
			}
		}
		if got := r.text("echo still here"); got != "still here\n" {
			s.Errorf("the next command prints %q", got)
		}
	},
	"argv/a program that may not be run": func(s *suite) {
		r := s.open()
		r.text("mkdir bin; echo : >bin/a-tool; chmod 644 bin/a-tool")
		_, err := r.Exec(s.boundedContext(), sandboxes.Command{
			Argv: []string{"a-tool"}, Env: []string{"PATH=" + r.Workdir() + "/bin:/usr/bin:/bin"},
		})
		if _, ok := errors.AsType[*sandboxes.StartError](err); !ok || !errors.Is(err, fs.ErrPermission) {
			s.Errorf("error is %v, want a StartError about a permission", err)
		}
	},
	"dir/worktree or what is asked for": func(s *suite) {
		r := s.open()
		if got, want := r.text("pwd -P"), r.text(`cd "$1" && pwd -P`, r.Workdir()); got != want {
			s.Errorf("without Dir it runs in %q, want %q", got, want)
		}
		r.text("mkdir 'sub dir'")
		cmd, out, _ := sh("pwd -P; printf x >here")
		cmd.Dir = r.Workdir() + "/sub dir"
		r.expectExit(cmd, sandboxes.Exit{})
		if !strings.HasSuffix(out.String(), "/sub dir\n") {
			s.Errorf("with Dir it runs in %q", out)
		}
		r.text("test -f 'sub dir/here'")
	},
	"dir/a worktree at the path that is asked for, or at its own": func(s *suite) {
		r := s.openSpec(sandboxes.Spec{Workdir: "/a place/worktree"})
		if at := r.Workdir(); at != "/a place/worktree" && at != r.host {
			s.Errorf("it is at %q", at)
		}
		r.write("file", []byte("x"))
		if got, want := r.text(`cat file; printf y >other; cat "$1/other"; pwd; echo "$PWD"`,
			r.Workdir()), "xy"+r.Workdir()+"\n"+r.Workdir()+"\n"; got != want {
			s.Errorf("commands see %q, want %q", got, want)
		}
	},
	"output/10 MB on both at once are complete and apart": func(s *suite) {
		r := s.open()
		a, b := randomBytes(10_000_000, 1), randomBytes(10_000_000, 2)
		r.write("a", a)
		r.write("b", b)
		cmd, out, errs := sh("cat a & cat b >&2; wait")
		r.expectExit(cmd, sandboxes.Exit{})
		if !bytes.Equal(out.Bytes(), a) {
			s.Errorf("stdout differs: %s", shorten(out.Bytes()))
		}
		if !bytes.Equal(errs.Bytes(), b) {
			s.Errorf("stderr differs: %s", shorten(errs.Bytes()))
		}
	},
	"output/nobody wants it": func(s *suite) {
		r := s.open()
		r.write("a", randomBytes(1<<20, 3))
		r.expectExit(sandboxes.Command{Argv: []string{"sh", "-c", "cat a; cat a >&2; exit 4"}}, sandboxes.Exit{Code: 4})
	},
	"output/a writer that fails does not stop the command": func(s *suite) {
		r := s.open()
		r.write("a", randomBytes(1<<20, 4))
		cmd, _, errs := sh("cat a; echo end >&2")
		broken := &brokenWriter{}
		cmd.Stdout = broken
		r.expectExit(cmd, sandboxes.Exit{})
		if errs.String() != "end\n" {
			s.Errorf("stderr is %q", errs)
		}
		if n := broken.calls.Load(); n != 1 {
			s.Errorf("the writer is called %d times, want once", n)
		}
	},
	"parallel/each command has its own output and end": func(s *suite) {
		r := s.open()
		long, in, out := r.echo()
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				cmd, got, _ := sh(`echo "$1"; exit "$1"`, strconv.Itoa(i))
				exit, err := r.Exec(s.boundedContext(), cmd)
				if err != nil || exit.Code != i || got.String() != strconv.Itoa(i)+"\n" {
					s.Errorf("command %d: %+v, %v, prints %q", i, exit, err, got)
				}
			})
		}
		wg.Wait()
		// The end of the other commands has not ended this one.
		in.say("after\n")
		out.await(s, "after\n")
		in.Close()
		if got := r.await(long); got.err != nil || !got.exit.OK() {
			s.Errorf("the long command: %+v", got)
		}
	},
}

// brokenWriter fails every Write, and counts the calls.
type brokenWriter struct{ calls atomic.Int32 }

func (w *brokenWriter) Write([]byte) (int, error) {
	w.calls.Add(1)
	return 0, errors.New("disk full")
}
