package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Ending `make test` through make's process id ends everything that it runs, and only then the engines.
func TestEnginesOutliveTheCommand(t *testing.T) {
	t.Parallel()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// The inner shell and its children keep the pipe open until they have ended.
	cmd := exec.CommandContext(t.Context(), "engines/with.sh", t.TempDir(), "bash", "-c", `bash -c "echo on; exec sleep 1000"; echo next`)
	cmd.Env, cmd.Stdout = append(os.Environ(), "RALPH_ENGINES=off"), w
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "on\n" {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("it ended with %v", err)
	}
	if err := out.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("what it ran is still on, or went on: %q, %v", rest, err)
	}
}
