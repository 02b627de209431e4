package sandboxtest

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Crashing is the environment variable with the id of the run whose sandbox [CrashMain] opens.
const Crashing = "SANDBOXTEST_CRASH"

// CrashMain is called by TestMain. In a process started by [Crash] it opens a sandbox in the working folder, and runs a
// command that would outlive the process. Otherwise it returns at once.
func CrashMain(p sandboxes.Provider) {
	run := os.Getenv(Crashing)
	if run == "" {
		return
	}
	dir, err := os.Getwd()
	if err == nil {
		ctx := context.Background()
		var box sandboxes.Sandbox
		if box, err = p.Open(ctx, sandboxes.Spec{Run: run, Worktree: dir}); err == nil {
			_, err = box.Exec(ctx, sandboxes.Command{
				Argv:   []string{"sh", "-c", "exec 9>life; setsid sh -c 'trap \"\" TERM HUP; sleep 100' & echo ready; sleep 100"},
				Stdout: os.Stdout,
			})
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Crash kills a process that has a sandbox of p, and checks that everything in the sandbox dies at once, without Reap. Then
// it calls Reap, and returns the run's id; nothing of the run may be left on the host. TestMain must call [CrashMain].
func Crash(t *testing.T, p interface {
	sandboxes.Provider
	sandboxes.Reaper
}) (run string) {
	t.Helper()
	dir := t.TempDir()
	read := fifo(t, filepath.Join(dir, "life"))
	run = "crash-" + rand.Text()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), Crashing+"="+run), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the sandbox says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if n, err := read.Read(make([]byte, 1)); n != 0 || err == nil { // end of file, or the test's time limit
		t.Errorf("the lifeline says %d, %v", n, err)
	}
	if err := p.Reap(t.Context(), run); err != nil {
		t.Errorf("Reap: %v", err)
	}
	return run
}
