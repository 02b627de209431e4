package proc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestExit(t *testing.T) {
	t.Parallel()
	tests := map[string]Exit{
		"exit 0":                 {},
		"exit 7":                 {Code: 7},
		"exit 255":               {Code: 255},
		"kill -KILL $$":          {Code: 137, Signal: unix.SIGKILL},
		"kill -TERM $$":          {Code: 143, Signal: unix.SIGTERM},
		"sh -c 'kill -TERM $$'":  {Code: 143, Signal: unix.SIGTERM},
		"sh -c 'exit 137'; true": {},
	}
	for script, want := range tests {
		for _, mark := range []string{"", "a mark"} {
			t.Run(script+mark, func(t *testing.T) {
				t.Parallel()
				s, _, _ := sh("exec 2>/dev/null; " + script)
				s.Mark = mark
				got := run(t, s)
				if script == "sh -c 'kill -TERM $$'" && got == (Exit{Code: 143}) {
					return // this shell does not exec its last command
				}
				if got != want {
					t.Errorf("ended with %+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestSessionOfItsOwn(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	read, write := io.Pipe()
	s, out, _ := sh(life.hold("echo $$; echo ready >&9; read -r x"))
	s.Stdin = read
	done := startRun(t.Context(), s)
	life.ready(t, 1)
	var pid int
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.parent == os.Getpid() && p.pid == p.group && p.pid == p.session {
			sid, err := unix.Getsid(p.pid)
			if err == unix.ESRCH {
				continue // a process of another test
			}
			if pid = p.pid; err != nil || sid != pid {
				t.Errorf("session of %d is %d, %v", pid, sid, err)
			}
		}
	}
	if pid == 0 {
		t.Error("no child of this process leads a session and a group")
	}
	_ = write.Close()
	if got := await(t, done); got.err != nil || out.Len() == 0 {
		t.Errorf("ended with %+v, prints %q", got, out)
	}
}

func TestEnvironmentIsOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	s, out, _ := sh("env")
	s.Env = append(path(), "A=first", "B=x", "A=last", "RALPH_MARK=outer", "RALPH_EXEC=outer", "not an entry")
	run(t, s)
	got := out.String()
	for _, want := range []string{"A=last\n", "B=x\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
	for _, not := range []string{"A=first", "RALPH_", "HOME=", "not an entry"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in %s", not, got)
		}
	}
	out.Reset()
	s.Mark = "the mark"
	run(t, s)
	if n := strings.Count(out.String(), "RALPH_MARK="); n != 1 || !strings.Contains(out.String(), "RALPH_MARK=the mark\n") {
		t.Errorf("the mark is there %d times: %s", n, out)
	}
}

func TestFolderAndRelativeProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program(t, dir, "tool", "#!/bin/sh\npwd -P\n", 0o755)
	var out bytes.Buffer
	run(t, Spec{Argv: []string{"./tool"}, Dir: dir, Stdout: &out})
	want, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != want+"\n" {
		t.Errorf("runs in %q, want %q", &out, want)
	}
}

// program writes a program file with a mode.
func program(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 1<<16)
	var out bytes.Buffer
	run(t, Spec{Argv: []string{"cat"}, Env: path(), Stdin: strings.NewReader(long), Stdout: &out})
	if out.String() != long {
		t.Errorf("1 MiB comes back as %d bytes", out.Len())
	}
	s, _, _ := sh("exit 3")
	s.Stdin = strings.NewReader(long)
	if got := run(t, s); got.Code != 3 {
		t.Errorf("input that is not read: %+v", got)
	}
	s, _, _ = sh("exec <&-; exit 4")
	s.Stdin = io.MultiReader(strings.NewReader(long))
	if got := run(t, s); got.Code != 4 {
		t.Errorf("input that is closed: %+v", got)
	}
}

type failing struct{ after io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.after.Read(p)
	if err == io.EOF {
		err = errStop
	}
	return n, err
}

func TestInputThatFailsKillsTheProcess(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	s, out, _ := sh(life.hold("cat >/dev/null; echo acted on half"))
	s.Stdin = failing{strings.NewReader("half")}
	_, err := Run(t.Context(), s)
	if !errors.Is(err, errStop) || !strings.Contains(err.Error(), "read the input of sh") {
		t.Errorf("error is %v", err)
	}
	if out.Len() > 0 || !life.gone() {
		t.Errorf("the process got through: %q", out)
	}
}

func TestInputThatBlocksDoesNotHold(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	s, _, _ := sh("exit 5")
	s.Stdin = io.MultiReader(read)
	if got := run(t, s); got.Code != 5 {
		t.Errorf("ended with %+v", got)
	}
	_ = write.Close() // unblocks the abandoned Read
}

// A writer to the input gets an error when the process has ended.
func TestInputPipeIsClosed(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	s, _, _ := sh("exit 5")
	s.Stdin = read
	if got := run(t, s); got.Code != 5 {
		t.Errorf("ended with %+v", got)
	}
	written := make(chan error)
	go func() {
		_, err := write.Write([]byte("late"))
		written <- err
	}()
	select {
	case err := <-written:
		if !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the write waits")
		_ = read.Close()
	}
}

func TestOneWriterForBoth(t *testing.T) {
	t.Parallel()
	s, out, _ := sh("for i in 1 2 3 4 5 6 7 8; do echo out; echo err >&2; done")
	s.Stderr = s.Stdout
	run(t, s)
	if want := strings.Repeat("out\nerr\n", 8); out.String() != want {
		t.Errorf("order is lost: %q", out)
	}
}

// odd is a writer of a type that cannot be compared.
type odd struct{ b []*bytes.Buffer }

func (o odd) Write(p []byte) (int, error) { return o.b[0].Write(p) }

func TestWritersThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	s, _, _ := sh("echo out; echo err >&2")
	s.Stdout, s.Stderr = odd{[]*bytes.Buffer{&out}}, odd{[]*bytes.Buffer{&errs}}
	run(t, s)
	if out.String() != "out\n" || errs.String() != "err\n" {
		t.Errorf("%q, %q", &out, &errs)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWriterThatFails(t *testing.T) {
	t.Parallel()
	calls := 0
	s, _, errs := sh("i=0; while [ $i -lt 20000 ]; do echo 0123456789abcdef; i=$((i+1)); done; echo end >&2; exit 6")
	s.Stdout = writerFunc(func([]byte) (int, error) { calls++; return 0, errStop })
	if got := run(t, s); got.Code != 6 || errs.String() != "end\n" {
		t.Errorf("ended with %+v, stderr %q", got, errs)
	}
	if calls != 1 {
		t.Errorf("the writer is called %d times, want once", calls)
	}
}

// A writer that is slower than the deadline for late output still gets everything.
func TestSlowWriterLosesNothing(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	var got bytes.Buffer
	var reading sync.WaitGroup
	s, _, _ := sh("i=0; while [ $i -lt 2000 ]; do echo 0123456789abcdef; i=$((i+1)); done")
	s.Stdout = write
	done := startRun(t.Context(), s)
	timer := time.NewTimer(lateOutput + lateOutput/2)
	defer timer.Stop()
	reading.Go(func() {
		<-timer.C
		_, _ = io.Copy(&got, read)
	})
	if r := await(t, done); r.err != nil || r.exit.Code != 0 {
		t.Errorf("ended with %+v", r)
	}
	_ = write.Close()
	reading.Wait()
	if got.Len() != 2000*17 {
		t.Errorf("got %d bytes, want %d", got.Len(), 2000*17)
	}
}

func TestContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	file := filepath.Join(t.TempDir(), "ran")
	if _, err := Run(ctx, Spec{Argv: []string{"touch", file}, Env: path()}); err != errStop {
		t.Errorf("error is %v, want the cause", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the process has run")
	}
}

// Run closes every file that it opens. Not parallel: other tests open files, too.
func TestLeavesNoDescriptor(t *testing.T) {
	count := func() int {
		t.Helper()
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	once := func(i int) {
		s, _, _ := sh("cat; exit " + strconv.Itoa(i))
		s.Stdin = strings.NewReader("x")
		if i%2 == 0 {
			s.Mark, s.Stdout = "m", nil
		}
		run(t, s)
		_, _ = Run(t.Context(), Spec{Argv: []string{"no-such-program"}, Stdout: io.Discard, Env: path()})
		_, _ = Run(t.Context(), Spec{Argv: []string{"/dev/null"}, Stdout: io.Discard, Stdin: strings.NewReader("")})
	}
	once(0)
	before := count()
	for i := range 10 {
		once(i)
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
