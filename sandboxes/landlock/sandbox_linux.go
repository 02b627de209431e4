package landlock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

type sandbox struct {
	plan  *plan
	room  *scratch
	group *cgroup.Group
	env   []string

	closing chan struct{} // closed by the first Close
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool // guarded by mu; running grows only before
	removed bool // guarded by mu; Close has done its work
	killed  cost // guarded by mu
}

var (
	_ sandboxes.Sandbox = (*sandbox)(nil)
	_ sandboxes.Keeper  = (*sandbox)(nil)
	_ sandboxes.Noticer = (*sandbox)(nil)
)

func newSandbox(p *plan, room *scratch, g *cgroup.Group, env []string) *sandbox {
	return &sandbox{plan: p, room: room, group: g, env: env, closing: make(chan struct{})}
}

// Workdir is the worktree's path, which is the same on both sides.
func (s *sandbox) Workdir() string { return s.plan.Worktree }

// Keeps is the scratch folder, in which nothing but the size of a file is limited.
func (s *sandbox) Keeps() []string { return []string{s.room.dir} }

// Exec runs one command, with a helper of its own.
func (s *sandbox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	if ctx.Err() != nil {
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return sandboxes.Exit{}, sandboxes.ErrClosed
	}
	s.running.Add(1)
	s.mu.Unlock()
	defer s.running.Done()
	if err := problem(cmd); err != nil {
		return sandboxes.Exit{}, err
	}
	r, err := s.call(ctx, cmd)
	s.mu.Lock()
	s.killed.Memory += r.Killed.Memory
	s.killed.PIDs += r.Killed.PIDs
	s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return sandboxes.Exit{}, context.Cause(ctx) // an abort counts before an exit
	case s.isClosed():
		return sandboxes.Exit{}, sandboxes.ErrClosed
	case err != nil:
		return sandboxes.Exit{}, err
	case r.Refused != "":
		return sandboxes.Exit{}, &sandboxes.StartError{Argv0: cmd.Argv[0], Err: refusalOf(r)}
	}
	return exitOf(r), nil
}

func (s *sandbox) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// problem is what is wrong with a command as it is.
func problem(cmd sandboxes.Command) error {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return &sandboxes.StartError{Argv0: "a process", Err: errors.New("no program is named")}
	}
	for _, text := range slices.Concat(cmd.Argv, cmd.Env, []string{cmd.Dir}) {
		if strings.ContainsRune(text, 0) {
			return &sandboxes.StartError{Argv0: cmd.Argv[0], Err: errors.New("an argument, its environment or its folder contains a NUL byte")}
		}
	}
	return nil
}

// order puts a command into the helper's terms.
func (s *sandbox) order(cmd sandboxes.Command) order {
	o := order{Plan: *s.plan, Argv: cmd.Argv, Dir: s.plan.Worktree, Env: s.env}
	if cmd.Dir != "" {
		o.Dir = cmd.Dir
		if !filepath.IsAbs(o.Dir) {
			o.Dir = filepath.Join(s.plan.Worktree, o.Dir)
		}
		o.Env = append(slices.Clip(o.Env), "PWD="+o.Dir)
	}
	o.Env = proc.LastWins(slices.Concat(o.Env, cmd.Env))
	return o
}

// refusalOf gives back the kind of error that the helper met.
func refusalOf(r report) error {
	switch r.Cause {
	case causeNotFound:
		return &startCause{r.Refused, exec.ErrNotFound}
	case causePermission:
		return &startCause{r.Refused, fs.ErrPermission}
	}
	return errors.New(r.Refused)
}

// startCause is an error of the other side, by its words and its kind.
type startCause struct {
	text string
	kind error
}

func (e *startCause) Error() string { return e.text }
func (e *startCause) Unwrap() error { return e.kind }

func exitOf(r report) sandboxes.Exit {
	exit := sandboxes.Exit{Code: r.Code}
	if r.Signal != 0 {
		exit.Code = 128 + r.Signal
		exit.Signal = unix.SignalName(unix.Signal(r.Signal))
		if exit.Signal == "" { // real-time signals have no name
			exit.Signal = fmt.Sprintf("SIG%d", r.Signal)
		}
	}
	return exit
}

// Close ends what runs, waits for it, and puts back what the sandbox has changed. When ctx ends first it can be called
// again.
func (s *sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		s.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done():
		return fmt.Errorf("close sandbox landlock: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed { // the run's mark may be in use again
		return nil
	}
	if err := proc.KillMarked(ctx, s.plan.Run); err != nil {
		return fmt.Errorf("close sandbox landlock: %w", err)
	}
	killed := s.group.Killed()
	if err := s.group.Remove(ctx); err != nil {
		return fmt.Errorf("close sandbox landlock: %w", err)
	}
	s.killed.Memory, s.group = s.killed.Memory+killed, nil
	if err := s.room.remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("close sandbox landlock: %w", err)
	}
	s.removed = true
	return nil
}

// Notices says what limits have cost.
func (s *sandbox) Notices() (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.killed.Memory; n > 0 {
		lines = append(lines, sandboxes.MemoryNotice(n, s.plan.Memory))
	}
	if n := s.killed.PIDs; n > 0 {
		lines = append(lines, sandboxes.PIDsNotice(n, s.plan.PIDs))
	}
	return lines
}
