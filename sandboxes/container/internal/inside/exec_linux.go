package inside

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// linger is how long the helper waits for ralph to hang up after its report, so that the engine can pass the report on.
const linger = 2 * time.Second

// helper runs one command, ends all its processes, and reports.
type helper struct {
	out          *FrameWriter
	input        chan []byte   // input of the command; closed at its end
	command      chan Command  // receives the command, once
	disconnected chan struct{} // closed when ralph has hung up
	ended        chan struct{} // closed when the command has ended
	score        *supervisor.Score

	mu         sync.Mutex
	root       int  // guarded by mu; PID of the command; 0 before its start and after its end
	killed     bool // guarded by mu; everything must end
	inputEnded bool // guarded by mu; the input has ended
}

// runCommand serves the role Exec.
func runCommand(in io.Reader, out io.Writer) error {
	score := supervisor.OpenScore()
	conceal()
	startThreads()
	runtime.LockOSThread() // ptrace operations on a command must come from the thread that started it
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	// A core file could be larger than the worktree. Not set by --ulimit, because podman then ignores the user's own
	// limits.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	h := &helper{
		out: &FrameWriter{W: out}, input: make(chan []byte, Window), command: make(chan Command, 1),
		disconnected: make(chan struct{}), ended: make(chan struct{}), score: score,
	}
	go h.receive(in)
	select {
	case c := <-h.command:
		if err := h.run(c); err != nil {
			return err
		}
	case <-h.disconnected:
		return errors.New("no command came")
	}
	select {
	case <-h.disconnected:
	case <-time.After(linger):
	}
	return nil
}

// receive handles frames until ralph hangs up. A hang-up before the report means that ralph has died.
func (h *helper) receive(in io.Reader) {
	defer close(h.disconnected)
	_, err := io.Copy(&FrameReader{On: h.handle}, in)
	_ = err // an invalid frame counts as a hang-up, too
	h.kill()
}

func (h *helper) handle(kind byte, payload []byte) error {
	switch kind {
	case FrameCommand:
		var c Command
		if err := json.Unmarshal(payload, &c); err != nil {
			return err
		}
		select {
		case h.command <- c:
		default:
			return errors.New("a second command")
		}
	case FrameInput, FrameInputEnd:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.inputEnded {
			return errors.New("input after its end")
		}
		if kind == FrameInputEnd {
			h.inputEnded = true
			close(h.input)
			return nil
		}
		select {
		case h.input <- bytes.Clone(payload):
		default:
			return errors.New("more input than was asked for")
		}
	case FrameTerminate:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.root > 0 {
			_ = unix.Kill(-h.root, unix.SIGTERM)
		}
	case FrameKill:
		h.kill()
	}
	return nil
}

// kill ends the command and every process that it has started. A command that has not started yet never will.
func (h *helper) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killed = true
	if h.root > 0 {
		supervisor.KillDescendants()
	}
}

// run starts the command and returns when its report has been sent.
func (h *helper) run(c Command) error {
	pipes, err := proc.OpenPipes(&inputReader{helper: h}, frameOutput{h.out, FrameStdout}, frameOutput{h.out, FrameStderr})
	if err != nil {
		return fmt.Errorf("make pipes: %w", err)
	}
	err = h.start(c, pipes)
	pipes.CloseEnds()
	if err != nil {
		pipes.Abandon()
		text, jsonErr := json.Marshal(refusalOf(err, c))
		if jsonErr != nil {
			return jsonErr
		}
		return h.out.Send(FrameRefused, text)
	}
	if err := h.out.Send(FrameStarted, nil); err != nil {
		h.kill()
	}
	pipes.Start()
	report := h.wait()
	close(h.ended)
	pipes.Finish()
	report.Killed = eventCount("oom_kill", "memory.events", "memory/memory.oom_control")
	report.Refused = eventCount("max", "pids.events", "pids/pids.events")
	text, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return h.out.Send(FrameExit, text)
}

// start forks the command in its own session.
func (h *helper) start(c Command, pipes *proc.Pipes) error {
	argv, env := toStrings(c.Argv), toStrings(c.Env)
	if len(argv) == 0 {
		return errors.New("no program is named")
	}
	path, err := proc.Lookup(argv[0], string(c.Dir), env)
	if err != nil {
		return err
	}
	var files []uintptr
	for _, f := range pipes.Ends() {
		files = append(files, f.Fd())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.killed {
		return errors.New("ralph has hung up")
	}
	var pid int
	h.score.Lend(func() { // when memory runs out, the kernel must kill the command, not its helper
		pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
			Dir: string(c.Dir), Env: env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
		})
	})
	if err != nil {
		return err
	}
	h.root = pid
	return nil
}

// wait reaps orphans until the command has ended, then kills and reaps all other processes.
func (h *helper) wait() Report {
	var end Report
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // ECHILD: no process is left, because all orphans become our children
			return end
		case ws.Stopped(): // it has made us its tracer
			detach(pid, ws.StopSignal())
			continue
		}
		h.mu.Lock()
		if pid == h.root {
			h.root = 0
			end = Report{Exit: sandboxes.ExitOf(ws.ExitStatus(), ws.Signal())}
		}
		over := h.root == 0
		h.mu.Unlock()
		if over {
			supervisor.KillDescendants()
		}
	}
}

// detach lets a process continue that has made this one its tracer. Only the thread that is its parent can detach it.
// Otherwise it would stay stopped forever, so it is killed.
func detach(pid int, sig unix.Signal) {
	if sig == unix.SIGTRAP { // sent only to traced processes, at an exec
		sig = 0
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(sig), 0, 0); errno != 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// eventCount returns how often an event has occurred in this container's control group, by the first of the files that exists. It
// is 0 where the kernel does not count, as in gVisor.
func eventCount(event string, files ...string) int {
	for _, file := range files {
		text, err := os.ReadFile("/sys/fs/cgroup/" + file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(strings.TrimSpace(line), event+" "); ok {
				n, _ := strconv.Atoi(count)
				return n
			}
		}
	}
	return 0
}

// frameOutput sends the command's output. After an error, proc discards the rest.
type frameOutput struct {
	out  *FrameWriter
	kind byte
}

func (o frameOutput) Write(p []byte) (int, error) { return len(p), o.out.Send(o.kind, p) }

// inputReader reads the command's input. It acknowledges a frame when the command's pipe has taken all of it.
type inputReader struct {
	*helper
	rest           []byte
	unacknowledged bool // rest belongs to an unacknowledged frame
}

func (r *inputReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.unacknowledged {
			_ = r.out.Send(FrameTaken, nil)
			r.unacknowledged = false
		}
		select {
		case next, ok := <-r.input:
			if !ok {
				return 0, io.EOF
			}
			r.rest, r.unacknowledged = next, true
		case <-r.ended:
			return 0, io.EOF
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
