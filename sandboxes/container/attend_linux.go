package container

import (
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
)

// farewell is how long the helper stays after its report, so that the engine has passed it on, if ralph does not hang
// up first.
const farewell = 2 * time.Second

// attendant starts one command, ends all that comes of it, and reports.
type attendant struct {
	out   *frameWriter
	input chan []byte   // for the command; closed at its end
	order chan order    // holds the command, once
	gone  chan struct{} // closed when ralph has hung up

	mu   sync.Mutex
	root int  // guarded by mu; 0 before the command's start and after its end
	doom bool // guarded by mu; everything has to end
	fed  bool // guarded by mu; the input has ended
}

// attend is the whole life of a helper.
func attend(in io.Reader, out io.Writer) error {
	conceal()
	getThreads()
	runtime.LockOSThread() // who starts the command is the only thread that its asking to be traced concerns
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	// A core file could be larger than the worktree. Not by --ulimit: to podman that means to forget the user's own.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	a := &attendant{
		out: &frameWriter{w: out}, input: make(chan []byte, window), order: make(chan order, 1),
		gone: make(chan struct{}),
	}
	go a.listen(in)
	select {
	case o := <-a.order:
		if err := a.run(o); err != nil {
			return err
		}
	case <-a.gone:
		return errors.New("no command came")
	}
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-a.gone:
	case <-t.C:
	}
	return nil
}

// listen obeys ralph until it hangs up. Hanging up before the report means that ralph has died.
func (a *attendant) listen(in io.Reader) {
	defer close(a.gone)
	_, err := io.Copy(&frameReader{on: a.obey}, in)
	_ = err // a torn frame is a hang-up, too
	a.kill()
}

func (a *attendant) obey(kind byte, payload []byte) error {
	switch kind {
	case frameCommand:
		var o order
		if err := json.Unmarshal(payload, &o); err != nil {
			return err
		}
		select {
		case a.order <- o:
		default:
			return errors.New("a second command")
		}
	case frameInput, frameInputEnd:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.fed {
			return errors.New("input after its end")
		}
		if kind == frameInputEnd {
			a.fed = true
			close(a.input)
			return nil
		}
		select {
		case a.input <- append([]byte(nil), payload...):
		default:
			return errors.New("more input than was asked for")
		}
	case frameTerminate:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.root > 0 {
			_ = unix.Kill(-a.root, unix.SIGTERM)
		}
	case frameKill:
		a.kill()
	}
	return nil
}

// kill ends the command and all it has started. A command that has not started yet never will.
func (a *attendant) kill() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.doom = true
	if a.root > 0 {
		killDescendants()
	}
}

// run starts the command and returns when its report is sent.
func (a *attendant) run(o order) error {
	files, err := openPipes()
	if err != nil {
		return fmt.Errorf("make pipes: %w", err)
	}
	if err := a.start(o, files); err != nil {
		files.closeAll()
		text, jsonErr := json.Marshal(explainStart(err, o))
		if jsonErr != nil {
			return jsonErr
		}
		return a.out.send(frameRefused, text)
	}
	if err := a.out.send(frameStarted, nil); err != nil {
		a.kill()
	}
	var copying sync.WaitGroup
	copying.Go(func() { a.copyOut(frameStdout, files.ours[1]) })
	copying.Go(func() { a.copyOut(frameStderr, files.ours[2]) })
	go a.feed(files.ours[0])

	end := a.await()
	copying.Wait()
	end.Killed = killedForMemory()
	text, err := json.Marshal(end)
	if err != nil {
		return err
	}
	return a.out.send(frameExit, text)
}

// start forks the command, in a session of its own.
func (a *attendant) start(o order, files *pipes) error {
	argv, env := texts(o.Argv), texts(o.Env)
	if len(argv) == 0 {
		return errors.New("no program is named")
	}
	path, err := find(argv[0], env)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.doom {
		return errors.New("ralph has hung up")
	}
	// When memory ends, the kernel is to choose the command and not its helper.
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: string(o.Dir), Env: env, Files: files.theirFDs(), Sys: &syscall.SysProcAttr{Setsid: true},
	})
	_ = os.WriteFile("/proc/self/oom_score_adj", score, 0)
	if err != nil {
		return err
	}
	files.closeTheirs()
	a.root = pid
	return nil
}

// await reaps orphans until the command has ended, then ends and reaps all that is left.
func (a *attendant) await() report {
	var end report
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // ECHILD: nobody is left, and orphans come to us
			return end
		case ws.Stopped(): // it has asked to be traced by us
			letGo(pid, ws.StopSignal())
			continue
		}
		a.mu.Lock()
		if pid == a.root {
			a.root = 0
			end = reportOf(ws)
		}
		over := a.root == 0
		a.mu.Unlock()
		if over {
			killDescendants()
		}
	}
}

// letGo goes on with a process that has made this one its debugger. Only its parent's thread can do that: another one ends
// it, as it would wait for ever.
func letGo(pid int, sig unix.Signal) {
	if sig == unix.SIGTRAP { // what only the traced get, for starting another program
		sig = 0
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(sig), 0, 0); errno != 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func reportOf(ws unix.WaitStatus) report {
	if !ws.Signaled() {
		return report{Code: ws.ExitStatus()}
	}
	r := report{Code: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	if r.Signal == "" {
		r.Signal = "SIG" + strconv.Itoa(int(ws.Signal()))
	}
	return r
}

// killedForMemory is how many processes the kernel has killed in this container because its memory was used up. Where
// it does not count, as in a virtual machine's place, it is 0.
func killedForMemory() int {
	for _, file := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				n, _ := strconv.Atoi(count)
				return n
			}
		}
	}
	return 0
}

// copyOut sends what the command writes. When ralph takes nothing more, the rest is discarded.
func (a *attendant) copyOut(kind byte, from *os.File) {
	defer func() { _ = from.Close() }()
	buf := make([]byte, chunk)
	for sending := true; ; {
		n, err := from.Read(buf)
		if n > 0 && sending {
			sending = a.out.send(kind, buf[:n]) == nil
		}
		if err != nil {
			return
		}
	}
}

// feed gives the command its input. A command that does not read it is no error.
func (a *attendant) feed(to *os.File) {
	defer func() { _ = to.Close() }()
	for p := range a.input {
		_, _ = to.Write(p)
		_ = a.out.send(frameTaken, nil)
	}
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
