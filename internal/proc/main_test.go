package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// helper is the environment variable that makes the test binary run as another program.
const helper = "RALPH_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helper) == "kill-own-mark" {
		if err := KillMarked(context.Background(), os.Getenv(markName)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("alive")
		os.Exit(0)
	}
	if help, ok := fileHelpers()[os.Getenv(helper)]; ok {
		help()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// limit ends a hanging test.
const limit = 20 * time.Second

var errStop = errors.New("the test stops it")

// path returns the minimal environment of most programs.
func path() []string { return []string{"PATH=" + os.Getenv("PATH")} }

// sh returns a Spec for a shell script, and buffers with its output.
func sh(script string) (Spec, *bytes.Buffer, *bytes.Buffer) {
	var out, errs bytes.Buffer
	return Spec{Argv: []string{"sh", "-c", script}, Env: path(), Stdout: &out, Stderr: &errs}, &out, &errs
}

// run runs a process and fails the test if it did not run.
func run(t *testing.T, s Spec) Exit {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("the test hangs"))
	defer cancel()
	exit, err := Run(ctx, s)
	if err != nil {
		t.Fatalf("Run %q: %v", s.Argv, err)
	}
	return exit
}

type result struct {
	exit Exit
	err  error
}

func startRun(ctx context.Context, s Spec) <-chan result {
	done := make(chan result, 1)
	go func() {
		exit, err := Run(ctx, s)
		done <- result{exit, err}
	}()
	return done
}

func await(t *testing.T, done <-chan result) result {
	t.Helper()
	select {
	case got := <-done:
		return got
	case <-time.After(limit):
		t.Fatal("Run does not return")
		return result{}
	}
}

// lifeline is a FIFO whose write end a test's processes hold as descriptor 9. End of file means that all have ended.
type lifeline struct {
	path        string
	read, write *os.File
}

func newLifeline(t *testing.T) *lifeline {
	t.Helper()
	l := &lifeline{path: filepath.Join(t.TempDir(), "lifeline")}
	if err := unix.Mkfifo(l.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.read, err = os.OpenFile(l.path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	if l.write, err = os.OpenFile(l.path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = l.read.Close(), l.write.Close() })
	return l
}

// hold returns the script with the lifeline open as descriptor 9.
func (l *lifeline) hold(script string) string {
	const detach = `detach() {
		if command -v setsid >/dev/null; then setsid "$@"; else perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' -- "$@"; fi
	}
	`
	return "exec 9>'" + l.path + "'\n" + detach + script
}

// ready waits for n lines from the processes.
func (l *lifeline) ready(t *testing.T, n int) {
	t.Helper()
	_ = l.read.SetReadDeadline(time.Now().Add(limit))
	one := make([]byte, 1)
	for n > 0 {
		if _, err := l.read.Read(one); err != nil {
			t.Fatalf("waiting for the processes: %v", err)
		}
		n -= strings.Count(string(one), "\n")
	}
}

// gone reports whether no process holds the lifeline.
func (l *lifeline) gone() bool {
	// Concurrent forks of this process hold copies of our descriptors until their exec. Block new forks, and wait for those
	// in progress.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	_ = l.write.Close()
	_ = l.read.SetReadDeadline(time.Time{})
	conn, err := l.read.SyscallConn()
	if err != nil {
		return false
	}
	var last error
	err = conn.Read(func(fd uintptr) bool {
		var buf [512]byte
		for {
			n, err := unix.Read(int(fd), buf[:])
			if err == unix.EAGAIN {
				ended, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
				if ended != 0 {
					continue
				}
			}
			if err != unix.EINTR && n <= 0 {
				last = err
				return true
			}
		}
	})
	return err == nil && last == nil
}
