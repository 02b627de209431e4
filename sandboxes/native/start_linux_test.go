package native_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// TestStartsAhead: a sandbox uses the process that was started for its run, and an unused process ends.
func TestStartsAhead(t *testing.T) {
	t.Parallel()
	p, run := native.New(native.Config{}), filepath.Base(filepath.Dir(t.TempDir()))
	done := p.Start(run)
	before := firsts(t, run)
	if len(before) != 1 {
		t.Fatalf("processes %q, want one", before)
	}
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: run, Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	done()
	if now := firsts(t, run); len(now) != 1 || now[0] != before[0] {
		t.Errorf("processes %q, want %q", now, before)
	}
	var out bytes.Buffer
	if exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"echo", "hello"}, Stdout: &out}); err != nil || !exit.OK() || out.String() != "hello\n" {
		t.Errorf("%q, %v, %v", out.String(), exit, err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
	p.Start(run)()
	if left := firsts(t, run); len(left) > 0 {
		t.Errorf("processes %q are left", left)
	}
	defer p.Start(run)()
	if err := p.Reap(t.Context(), run); err != nil {
		t.Error(err)
	}
	if left := firsts(t, run); len(left) > 0 {
		t.Errorf("Reap leaves the processes %q", left)
	}
	if box, err = p.Open(t.Context(), sandboxes.Spec{Run: run, Worktree: t.TempDir()}); err != nil {
		t.Fatal("after Reap:", err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStartedProcessIsKilled: a sandbox opens although the process that was started for it has ended.
func TestStartedProcessIsKilled(t *testing.T) {
	t.Parallel()
	p, run := native.New(native.Config{}), filepath.Base(filepath.Dir(t.TempDir()))
	defer p.Start(run)()
	pid, err := strconv.Atoi(strings.Split(firsts(t, run)[0], "/")[2])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for len(firsts(t, run)) > 0 {
		<-time.After(time.Millisecond) // the end of the process causes no event here
	}
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: run, Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// firsts returns the init processes of a run's sandboxes.
func firsts(t *testing.T, run string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "\x00native\x00"+run+"\x00") {
			found = append(found, name)
		}
	}
	return found
}
