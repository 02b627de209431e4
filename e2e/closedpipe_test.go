package e2e

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// startPiped starts ralph with both outputs in one pipe, like `ralph … 2>&1 | PROGRAM`, and returns the reader's end. The
// parent ignores SIGPIPE, as systemd does; ralph must give its children the default disposition anyway.
func (s scene) startPiped(t *testing.T, r repository, env []string, args ...string) (p *ralph, reader *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	defer writer.Close()
	program, err := exec.LookPath("ralph")
	if err != nil {
		t.Fatal(err)
	}
	p = &ralph{Cmd: exec.Command("sh", append([]string{"-c", `trap "" PIPE; exec "$0" "$@"`, program}, args...)...)}
	p.Dir, p.Env, p.Stdout, p.Stderr = string(r), s.env(env...), writer, writer
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p, reader
}

// Ctrl-C ends `ralph work 2>&1 | tee log.txt` cleanly, although it ends tee first.
func TestInterruptBehindAPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, r := newScene(t, waiting(dir, "say: hello")), newRepository(t)
	key := r.backlog(t, 1)[0]
	p, reader := s.startPiped(t, r, nil, "work")
	awaitFile(t, filepath.Join(dir, key))
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := p.end(t); got != exitInterrupted {
		t.Errorf("status %d, want %d", got, exitInterrupted)
	}
	if r.commits(t, "ralph/"+key) != 1 {
		t.Error("the commit is lost")
	}
	s.clean(t, r)
}

// A sweep continues to its end when its output has no reader any more.
func TestSweepBehindAClosedPipe(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	keys := r.backlog(t, 2)
	p, reader := s.startPiped(t, r, nil, "work", "--parallel", "1", "--log-level", "debug", "--verbose")
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.end(t); got != 0 {
		t.Errorf("status %d, want 0", got)
	}
	for _, key := range keys {
		if r.commits(t, "ralph/"+key) != 1 {
			t.Errorf("%s was not worked", key)
		}
	}
	for _, args := range [][]string{{"status"}, {"show", keys[0]}, {"logs", keys[0]}, {"config"}, {"help"}, {"status", "--json"}} {
		p, reader := s.startPiped(t, r, nil, args...)
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		if got := p.end(t); got != 0 {
			t.Errorf("%s: status %d, want 0", strings.Join(args, " "), got)
		}
	}
	s.clean(t, r)
}

// A command with endless output ends when its reader is gone.
func TestEndlessOutputEndsWithItsReader(t *testing.T) {
	t.Parallel()
	s, r := newScene(t, doIt), newRepository(t)
	p, reader := s.startPiped(t, r, nil, "sandbox", "exec", "--", "yes")
	if _, err := reader.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	if got := p.end(t); got != 143 {
		t.Errorf("status %d, want that of a command that was asked to end", got)
	}
	s.clean(t, r)
}

// SIGPIPE ends the processes that ralph starts, as usual.
func TestChildrenDieOfClosedPipes(t *testing.T) {
	t.Parallel()
	sandboxes := []string{"none"}
	if runtime.GOOS == "linux" {
		sandboxes = append(sandboxes, isolating()...)
	}
	for _, sandbox := range sandboxes {
		t.Run(sandbox, func(t *testing.T) {
			t.Parallel()
			s, r := newScene(t, doIt), newRepository(t)
			p, reader := s.startPiped(t, r, nil, "sandbox", "exec", "--sandbox", sandbox, "--",
				"sh", "-c", "sh -c 'kill -s PIPE $$; echo survived'; echo $?")
			out, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			if status := p.end(t); string(out) != "141\n" || status != 0 {
				t.Errorf("status %d, output %q", status, out)
			}
		})
	}
}
