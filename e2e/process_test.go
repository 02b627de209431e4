package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// process is a running process; zombies are not listed.
type process struct {
	pid, parent int
	args        string
}

// processesWith lists the processes that have setting ("NAME=value") in their environment, except this one.
func processesWith(t testing.TB, setting string) []process {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err == nil {
		return fromProc(t, setting)
	}
	return fromPS(t, setting)
}

// fromProc reads Linux's /proc. It ignores processes that end meanwhile.
func fromProc(t testing.TB, setting string) []process {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), setting) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		// The format is "pid (name) state ppid …", and the name may contain anything.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		p := process{args: strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		p.parent, _ = strconv.Atoi(fields[1])
		if p.pid != os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}

// fromPS asks ps, which on macOS prints the environment after the arguments.
func fromPS(t testing.TB, setting string) []process {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-E", "-ww", "-o", "pid=,ppid=,stat=,command=").Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	var found []process
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || strings.HasPrefix(f[2], "Z") || !slices.Contains(f, setting) {
			continue
		}
		p := process{args: strings.Join(f[3:], " ")}
		p.pid, _ = strconv.Atoi(f[0])
		p.parent, _ = strconv.Atoi(f[1])
		if p.pid != os.Getpid() {
			found = append(found, p)
		}
	}
	return found
}

// noneLeft fails the test if a process has the setting.
func noneLeft(t testing.TB, setting string) {
	t.Helper()
	if left := processesWith(t, setting); len(left) > 0 {
		t.Errorf("processes with %s are left: %s", setting, describe(left))
	}
}

func describe(ps []process) string {
	var lines []string
	for _, p := range ps {
		lines = append(lines, fmt.Sprintf("%d (of %d) %.120s", p.pid, p.parent, p.args))
	}
	return strings.Join(lines, "; ")
}

func TestProcessesWith(t *testing.T) {
	t.Parallel()
	setting := "E2E_TEST_PROCESS=" + t.TempDir()
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{setting, "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the process to be listed", func() bool {
		ps := processesWith(t, setting)
		return len(ps) == 1 && ps[0].pid == cmd.Process.Pid && ps[0].parent == os.Getpid()
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the zombie not to be listed", func() bool { return len(processesWith(t, setting)) == 0 })
	_ = cmd.Wait()
}
