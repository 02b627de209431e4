package native

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// server is the first process at work: it starts commands, reaps everything, and says how its commands ended.
type server struct {
	conn *net.UnixConn
	plan *plan

	// mu also keeps the reaper away from a start: a process that cannot be started is reaped by who tried.
	mu       sync.Mutex
	commands map[uint64]*command // guarded by mu; until nothing of the command is left
	children chan struct{}       // has a value when there may be children to reap
	reaped   chan struct{}       // guarded by mu; closed and replaced when something was reaped
}

// command is a command that runs, or has ended and left processes behind.
type command struct {
	id    uint64
	root  int    // its first process: leader of a session and a group
	nonce string // in the environment of its processes
	ended chan struct{}
	exit  event // before ended is closed, the reaper's; afterwards fixed
	kill  chan struct{}
	once  sync.Once // closes kill
}

func newServer(conn *net.UnixConn, p *plan) *server {
	return &server{
		conn: conn, plan: p, commands: make(map[uint64]*command),
		children: make(chan struct{}, 1), reaped: make(chan struct{}),
	}
}

// say tells the host side; a packet is one message, so that several goroutines may speak.
func (s *server) say(e event) error {
	if len(e.Error) > maxPacket/8 {
		e.Error = e.Error[:maxPacket/8]
	}
	return send(s.conn, e)
}

// serve answers requests until the conversation ends.
func (s *server) serve() error {
	go s.reap()
	if s.plan.WatchMemory || s.plan.WatchPIDs {
		go s.watch()
	}
	for {
		var r request
		files, err := receive(s.conn, &r)
		if err != nil {
			return err
		}
		switch r.Op {
		case opExec:
			s.exec(r, files)
		case opSignal, opKill:
			s.mu.Lock()
			c := s.commands[r.ID]
			s.mu.Unlock()
			if c != nil {
				s.end(c, r.Op)
			}
		}
		closeAll(files)
	}
}

// end asks a command to end, or kills it.
func (s *server) end(c *command, op string) {
	if op == opKill {
		c.once.Do(func() { close(c.kill) })
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c.ended: // its number may be another's by now
	default:
		_ = unix.Kill(-c.root, unix.SIGTERM)
	}
}

// exec starts a command, and says so when that is impossible.
func (s *server) exec(r request, files []*os.File) {
	c, err := s.start(r, files)
	if err == nil {
		go s.follow(c)
		return
	}
	e := event{ID: r.ID, Kind: kindRefused, Error: err.Error()}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		e.Cause = causeNotFound
	case errors.Is(err, fs.ErrPermission):
		e.Cause = causePermission
	}
	_ = s.say(e) // when ralph is gone, so are we
}

func (s *server) start(r request, files []*os.File) (*command, error) {
	if len(files) != 3 || len(r.Argv) == 0 {
		return nil, errors.New("the request is not complete")
	}
	path, err := lookup(r.Argv[0], r.Env)
	if err != nil {
		return nil, err
	}
	c := &command{id: r.ID, nonce: fmt.Sprintf("%s%d", execMark, r.ID), ended: make(chan struct{}), kill: make(chan struct{})}
	attr := syscall.ProcAttr{
		Dir: r.Dir, Env: append(r.Env, c.nonce),
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, _, err := syscall.StartProcess(path, r.Argv, &attr)
	runtime.KeepAlive(files) // their numbers were in use until here
	if err != nil {
		return nil, explainStart(err, path, r)
	}
	c.root = pid
	limitCommand(pid, s.plan.PIDs)
	s.commands[r.ID] = c
	select {
	case s.children <- struct{}{}:
	default:
	}
	return c, nil
}

// limitCommand bounds the number of processes of this user in this sandbox, for the command and all it starts, by less
// than the first process is bound by, which so stays free to work. It also makes the command what the kernel ends first
// when memory is short.
func limitCommand(pid, most int) {
	limit := unix.Rlimit{Cur: uint64(most), Max: uint64(most)}
	_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &limit, nil) // it may have ended already
	_ = os.WriteFile(procFile(pid, "oom_score_adj"), []byte("500"), 0)
}

// follow sees a command to its end: its own, or its killing. Then it ends everything the command has started, and only
// then says how it ended.
func (s *server) follow(c *command) {
	select {
	case <-c.ended:
	case <-c.kill:
	}
	s.endTree(c)
	<-c.ended
	s.mu.Lock()
	delete(s.commands, c.id)
	s.mu.Unlock()
	_ = s.say(c.exit)
}

// reap takes the status of everything that ends in the sandbox, as a first process must. It never returns.
func (s *server) reap() {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch err {
		case nil:
			s.mu.Lock()
			for s.reapOne() {
			}
			close(s.reaped)
			s.reaped = make(chan struct{})
			s.mu.Unlock()
		case unix.ECHILD: // there are no others than those we start, and theirs
			<-s.children
		}
	}
}

// reapOne reaps one process; false when none is left to reap. mu is held.
func (s *server) reapOne() bool {
	var status unix.WaitStatus
	pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
	if err == unix.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	for _, c := range s.commands {
		if c.root != pid {
			continue
		}
		select {
		case <-c.ended: // an earlier owner of the number
			continue
		default:
		}
		c.exit = event{ID: c.id, Kind: kindExited, Code: status.ExitStatus()}
		if status.Signaled() {
			c.exit.Code, c.exit.Signal = 128+int(status.Signal()), int(status.Signal())
		}
		close(c.ended)
	}
	return true
}
