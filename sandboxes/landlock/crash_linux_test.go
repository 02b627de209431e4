package landlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/landlock"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// TestNothingOutlivesRalph: the processes of a sandbox die with ralph, and Reap removes the rest.
func TestNothingOutlivesRalph(t *testing.T) {
	t.Parallel()
	nothingLeft(t, sandboxtest.Crash(t, landlock.New(landlock.Config{})))
}

// TestNothingOutlivesTheSupervisor kills a sandbox's supervisor: the command fails, and none of its processes is left.
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
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "has ended by itself (signal: killed") {
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

// processesOf returns the processes with a text in their arguments.
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

// nothingLeft checks for everything that a sandbox could leave on the host.
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
