package landlock_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
)

// crashing names the run that this program, as one of its own, opens a sandbox for until it is killed.
const crashing = "LANDLOCK_TEST_CRASH"

// untilKilled runs a command that would outlive this program.
func untilKilled(run string) int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	box, err := landlock.New(landlock.Config{}).Open(ctx, sandboxes.Spec{Run: run, Worktree: dir})
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
	if err := landlock.New(landlock.Config{}).Reap(t.Context(), run); err != nil {
		t.Errorf("Reap: %v", err)
	}
	nothingLeft(t, run)
}

// TestNothingOutlivesTheSupervisor kills a sandbox's supervisor: the command ends with an error, and nothing of it is left.
func TestNothingOutlivesTheSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := "killed-" + dir
	box, err := landlock.New(landlock.Config{}).Open(t.Context(), sandboxes.Spec{Run: run, Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	read, write := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		_, err := box.Exec(t.Context(), sandboxes.Command{
			Argv: []string{"sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000"}, Stdout: write,
		})
		failed <- err
	}()
	if line, err := bufio.NewReader(read).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the sandbox says %q, %v", line, err)
	}
	for _, pid := range processesOf(t, "\x00landlock\x00"+run+"\x00") {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "has ended by itself") {
		t.Errorf("Exec gives %v", err)
	}
	if left := processesOf(t, "sleep\x001000"); len(left) > 0 && slices.ContainsFunc(left, func(pid int) bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return strings.Contains(string(env), run)
	}) {
		t.Errorf("processes %d are left", left)
	}
	if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	nothingLeft(t, run)
}

// processesOf finds the processes with a text in their arguments.
func processesOf(t *testing.T, text string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		if args, err := os.ReadFile(name); err == nil && strings.Contains(string(args), text) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// nothingLeft looks for what a sandbox could leave on the host.
func nothingLeft(t *testing.T, run string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), landlock.ScratchPrefix(run)+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%s is left, %v", left, err)
	}
	for _, at := range cgroup.Find() {
		if left, err := filepath.Glob(filepath.Join(at.Dir, cgroup.Prefix(run)+"*")); err != nil || len(left) > 0 {
			t.Errorf("control group %s is left, %v", left, err)
		}
	}
}
