package reexec

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { //nolint:gochecknoinits // a registration
	Register("survivor", func(p Process) int {
		CatchSignals()
		_, _ = io.WriteString(p.Stdout, "ready\n")
		_, _ = io.Copy(p.Stdout, p.Stdin)
		_, _ = io.WriteString(p.Stderr, "nobody reads this\n")
		return 4
	})
}

// TestCatchSignals sends every signal to a process.
func TestCatchSignals(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", Args("survivor")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	closed, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for number := unix.Signal(1); number <= 64; number++ {
		if number == unix.SIGKILL || number == unix.SIGSTOP {
			continue
		}
		if err := cmd.Process.Signal(number); err != nil {
			t.Errorf("signal %d: %v", number, err)
		}
		if _, err := io.WriteString(in, "alive\n"); err != nil {
			t.Fatalf("after signal %d: %v", number, err)
		}
		if line, err := lines.ReadString('\n'); line != "alive\n" {
			t.Fatalf("after signal %d: %q, %v", number, line, err)
		}
	}
	// Go ends a program that writes to a closed pipe, unless it has asked for SIGPIPE.
	if err := errors.Join(closed.Close(), in.Close()); err != nil {
		t.Error(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}
