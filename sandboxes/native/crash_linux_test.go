package native_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// crashing names the run that this program, as one of its own, opens a sandbox for until it is killed.
const crashing = "NATIVE_TEST_CRASH"

// untilKilled runs a command that would outlive this program.
func untilKilled(run string) int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	box, err := native.New(native.Config{}).Open(ctx, sandboxes.Spec{Run: run, Worktree: dir})
	if err == nil {
		_, err = box.Exec(ctx, sandboxes.Command{
			Argv:   []string{"sh", "-c", "exec 9>life; setsid sh -c 'trap \"\" TERM HUP; sleep 100' & echo ready; sleep 100"},
			Stdout: os.Stdout,
		})
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// TestNothingOutlivesRalph kills a program that has a sandbox: all that is in it dies at once, without anybody's help,
// and what is left of it is gone after Reap.
func TestNothingOutlivesRalph(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	life := filepath.Join(dir, "life")
	if err := unix.Mkfifo(life, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(life, 0o666); err != nil {
		t.Fatal(err)
	}
	read, err := os.OpenFile(life, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()

	run := "crash-" + rand.Text()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), crashing+"="+run), os.Stderr
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
	if n, err := read.Read(make([]byte, 1)); n != 0 || err == nil { // the end of file, or the test's own limit
		t.Errorf("the lifeline says %d, %v", n, err)
	}
	if err := native.New(native.Config{}).Reap(t.Context(), run); err != nil {
		t.Errorf("Reap: %v", err)
	}
	nothingLeft(t, run)
}

// TestOpenWantsMain: a program whose main does not call reexec.Main gets an error, not a second copy of itself.
func TestOpenWantsMain(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), crashing+"=main", withoutMain+"=1")
	out, err := cmd.CombinedOutput()
	want := "open sandbox native: the sandbox starts this program again, so its main function has to call reexec.Main first\n"
	if string(out) != want || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it says %q, %v; want %q", out, err, want)
	}
}

// nothingLeft looks for what a sandbox could leave on the host.
func nothingLeft(t *testing.T, run string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "\x00native\x00"+run) {
			t.Errorf("%s: %q is left", name, text)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), "/.scratch") || strings.Contains(string(mounts), run) {
		t.Errorf("mounts are left, %v:\n%s", err, mounts)
	}
	prefix := cgroup.Prefix(run)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), prefix) {
			t.Errorf("control group %s is left", path)
		}
		return nil
	})
}
