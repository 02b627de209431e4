package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// defaultGrace is the time from asking a command to end to killing it.
const defaultGrace = 10 * time.Second

// answerLimit is how long the first process may take to end a command before the whole sandbox is ended in its place.
const answerLimit = 30 * time.Second

// errEnded: the sandbox's first process is no more, though nobody has closed the sandbox.
var errEnded = errors.New("the sandbox has ended by itself: its first process was killed, perhaps for want of memory")

type sandbox struct {
	first *first
	group *cgroup.Group
	dir   string
	env   []string
	who   identity
	plan  *plan
	heard chan struct{} // closed when the first process will say no more

	mu      sync.Mutex
	closed  bool                   // guarded by mu
	next    uint64                 // guarded by mu
	waiting map[uint64]chan event  // guarded by mu
	broken  error                  // guarded by mu; why the sandbox was ended from here
	killed  map[string]int         // guarded by mu; processes that a limit has cost, by its cause
	running sync.WaitGroup         // Execs; mu is held to add
	closing func() <-chan struct{} // waits for running, once
}

var (
	_ sandboxes.Sandbox = (*sandbox)(nil)
	_ sandboxes.Noticer = (*sandbox)(nil)
)

func newSandbox(f *first, g *cgroup.Group, p *plan, env []string, who identity) *sandbox {
	s := &sandbox{
		first: f, group: g, dir: p.Worktree, env: env, who: who, plan: p,
		heard: make(chan struct{}), waiting: make(map[uint64]chan event), killed: make(map[string]int),
	}
	s.closing = sync.OnceValue(func() <-chan struct{} {
		idle := make(chan struct{})
		go func() {
			s.running.Wait()
			close(idle)
		}()
		return idle
	})
	go s.listen()
	return s
}

// Workdir is the worktree's path, which is the same on both sides.
func (s *sandbox) Workdir() string { return s.dir }

// listen passes on what the first process says, until it ends. Words that belong to no command are dropped.
func (s *sandbox) listen() {
	defer close(s.heard)
	buf := make([]byte, maxPacket)
	for {
		e, err := s.first.hear(buf)
		if err != nil {
			_ = s.first.process.Kill()
			return
		}
		s.mu.Lock()
		answer := s.waiting[e.ID]
		delete(s.waiting, e.ID)
		if e.Kind == kindKilled {
			s.killed[e.Cause]++
		}
		s.mu.Unlock()
		if answer != nil && (e.Kind == kindExited || e.Kind == kindRefused) {
			answer <- e // has room for the one
		}
	}
}

// Exec runs one command.
func (s *sandbox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	id, answer, err := s.enter()
	if err != nil {
		return sandboxes.Exit{}, err
	}
	defer s.leave(id)
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: "a process", Err: errors.New("no program is named")}
	}
	files, err := proc.OpenPipes(cmd.Stdin, cmd.Stdout, cmd.Stderr)
	if err == nil && s.who.root {
		if err = files.Chown(s.who.hostUID, s.who.hostGID); err != nil { // for who opens /dev/stdout
			files.CloseEnds()
			files.Abandon()
		}
	}
	if err != nil {
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: err}
	}
	ends := files.Ends()
	err = s.send(s.request(id, cmd), ends[:]...)
	files.CloseEnds()
	if err != nil {
		files.Abandon()
		return sandboxes.Exit{}, s.because(err)
	}
	files.Start()
	e, err := s.await(ctx, &cmd, id, answer, files)
	files.Finish()
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx) // an abort counts before an exit
	}
	switch {
	case err != nil:
		return sandboxes.Exit{}, s.because(err)
	case e.Kind == kindRefused:
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusalOf(e)}
	}
	return exitOf(e), nil
}

// enter makes room for a command's answer.
func (s *sandbox) enter() (uint64, chan event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, sandboxes.ErrClosed
	}
	s.next++
	answer := make(chan event, 1)
	s.waiting[s.next] = answer
	s.running.Add(1)
	return s.next, answer, nil
}

func (s *sandbox) leave(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
	s.running.Done()
}

// request puts a command into the first process's terms.
func (s *sandbox) request(id uint64, cmd sandboxes.Command) request {
	r := request{ID: id, Op: opExec, Argv: cmd.Argv, Dir: s.dir, Env: s.env}
	if cmd.Dir != "" {
		r.Dir = cmd.Dir
		if !filepath.IsAbs(r.Dir) {
			r.Dir = filepath.Join(s.dir, r.Dir)
		}
		r.Env = append(slices.Clip(r.Env), "PWD="+r.Dir)
	}
	r.Env = proc.LastWins(slices.Concat(r.Env, cmd.Env))
	return r
}

// send speaks to the first process, which has to listen within a bounded time.
func (s *sandbox) send(r request, files ...*os.File) error {
	_ = s.first.conn.SetWriteDeadline(time.Now().Add(answerLimit))
	err := send(s.first.conn, r, files...)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.breakUp(fmt.Errorf("its first process has not listened for %s", answerLimit))
	}
	return err
}

// await returns the answer, or why there is none. The command has been ended, with all it started, or else the sandbox.
func (s *sandbox) await(ctx context.Context, cmd *sandboxes.Command, id uint64, answer <-chan event, files *proc.Pipes) (e event, err error) {
	interrupt, done, failed := cmd.Interrupt, ctx.Done(), files.Failed()
	var grace, patience <-chan time.Time
	kill := func() {
		interrupt, done, failed, grace = nil, nil, nil, nil
		t := time.NewTimer(answerLimit)
		patience = t.C
		_ = s.send(request{ID: id, Op: opKill}) // when it fails, the sandbox has ended
	}
	for {
		select {
		case e = <-answer:
			return e, err
		case <-s.heard:
			select {
			case e = <-answer: // it was said before the end
				return e, err
			default:
			}
			if err == nil {
				err = errEnded
			}
			<-s.first.gone
			return e, err
		case <-done:
			err = context.Cause(ctx)
			kill()
		case cause := <-failed:
			err = fmt.Errorf("read the input of %s: %w", cmd.Argv[0], cause)
			kill()
		case <-interrupt:
			interrupt = nil
			_ = s.send(request{ID: id, Op: opSignal})
			d := cmd.Grace
			if d <= 0 {
				d = defaultGrace
			}
			t := time.NewTimer(d)
			defer t.Stop()
			grace = t.C
		case <-grace:
			kill()
		case <-patience:
			s.breakUp(fmt.Errorf("its first process has not ended a command for %s", answerLimit))
		}
	}
}

// breakUp ends a sandbox that does not do what it must.
func (s *sandbox) breakUp(why error) {
	s.mu.Lock()
	s.broken = errors.Join(s.broken, why)
	s.mu.Unlock()
	_ = s.first.process.Kill()
}

// because prefers the reason that is known here.
func (s *sandbox) because(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return sandboxes.ErrClosed
	}
	if s.broken != nil {
		return fmt.Errorf("sandbox native was ended: %w", s.broken)
	}
	select {
	case <-s.heard:
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return errEnded
		}
	default:
	}
	return err
}

// refusalOf gives back the kind of error that the first process met.
func refusalOf(e event) error {
	switch e.Cause {
	case causeNotFound:
		return &startCause{e.Error, exec.ErrNotFound}
	case causePermission:
		return &startCause{e.Error, fs.ErrPermission}
	}
	return errors.New(e.Error)
}

// startCause is an error of the other side, by its words and its kind.
type startCause struct {
	text string
	kind error
}

func (e *startCause) Error() string { return e.text }
func (e *startCause) Unwrap() error { return e.kind }

func exitOf(e event) sandboxes.Exit {
	exit := sandboxes.Exit{Code: e.Code}
	if e.Signal != 0 {
		exit.Code = 128 + e.Signal
		exit.Signal = unix.SignalName(unix.Signal(e.Signal))
		if exit.Signal == "" { // real-time signals have no name
			exit.Signal = fmt.Sprintf("SIG%d", e.Signal)
		}
	}
	return exit
}

// Close kills the first process, and the kernel with it everything in the sandbox. When ctx ends first it can be called
// again.
func (s *sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if err := s.first.kill(ctx); err != nil {
		return fmt.Errorf("close sandbox native: %w", err)
	}
	select {
	case <-s.closing():
	case <-ctx.Done():
		return fmt.Errorf("close sandbox native: %w", context.Cause(ctx))
	}
	<-s.heard
	if n := s.group.Killed(); n > 0 {
		s.mu.Lock()
		s.killed[causeMemory] = n // the kernel's count, not both
		s.mu.Unlock()
	}
	if err := s.group.Remove(ctx); err != nil {
		return fmt.Errorf("close sandbox native: %w", err)
	}
	return nil
}

// Notices says what limits have cost.
func (s *sandbox) Notices() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.killed[causeMemory]; n > 0 {
		lines = append(lines, sandboxes.MemoryNotice(n, s.plan.Memory))
	}
	if n := s.killed[causePIDs]; n > 0 {
		lines = append(lines, sandboxes.PIDsNotice(n, s.plan.PIDs))
	}
	return lines
}
