package landlock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// helper starts one command, answers for it what the filter leaves open, ends all that comes of it, and reports.
type helper struct {
	order  order
	warden *warden

	mu   sync.Mutex
	root int  // guarded by mu; the command, until it is reaped
	over bool // guarded by mu; everything has to end
}

// help is the whole life of a helper.
func help(conn *net.UnixConn) error {
	o, err := receive(conn)
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt orphans: %w", err)
	}
	h := &helper{order: o, warden: newWarden(&o.Plan)}
	if o.Plan.Egress != "" {
		stop, err := h.warden.gate.forward(o.Plan.Egress)
		if err != nil {
			return fmt.Errorf("forward to the egress socket: %w", err)
		}
		defer stop()
	}
	child, err := h.start()
	if err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	if err := cgroup.Enter(o.Plan.Groups, h.root); err != nil { // it waits for its order
		return err
	}
	go h.listen(conn)
	if err := silence(); err != nil {
		return err
	}
	refused, err := h.handOver(child)
	_ = child.Close()
	watcher := newWatcher(&h.order.Plan)
	if err != nil {
		h.end()
	} else if refused == nil && (o.Plan.WatchMemory || o.Plan.WatchPIDs) {
		go watcher.run()
	}
	r := h.await()
	switch {
	case err != nil:
		return err
	case refused != nil:
		r = *refused
	}
	r.Killed = watcher.cost()
	return tell(conn, r)
}

// start starts the process that becomes the command, in a session of its own. The kernel kills it when the calling
// thread, which is the helper's for good, ends.
func (h *helper) start() (*net.UnixConn, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	mark := markName + h.order.Plan.Run
	h.order.Env = append(h.order.Env, mark)
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"/proc/self/exe", helperWord, roleCommand}, &syscall.ProcAttr{
		Dir: "/", Env: append(helperEnv(), mark), Files: []uintptr{0, 1, 2, theirs.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	h.root = pid
	return ours, nil
}

// silence lets go of the command's files, so that nothing but the command holds them.
func silence() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return fmt.Errorf("let go of the command's files: %w", err)
		}
	}
	return nil
}

// handOver gives the process its order and takes what the filter asks through. It returns when the command has begun,
// with nil, or has been refused.
func (h *helper) handOver(child *net.UnixConn) (*report, error) {
	if err := send(child, h.order); err != nil {
		return nil, nil //nolint:nilerr,nilnil // it has ended, and its end will tell how
	}
	first, rights := make([]byte, maxReport), make([]byte, unix.CmsgSpace(4))
	n, nr, _, _, err := child.ReadMsgUnix(first, rights)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // as above
	}
	if nr > 0 {
		messages, err := unix.ParseSocketControlMessage(rights[:nr])
		if err != nil || len(messages) != 1 {
			return nil, errors.Join(errors.New("the command's filter did not come"), err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) != 1 {
			return nil, errors.Join(errors.New("the command's filter did not come"), err)
		}
		go h.warden.answer(fds[0])
		first, n = first[1:], n-1 // the letter that carried it
	}
	rest, err := io.ReadAll(io.LimitReader(child, maxReport))
	text := append(first[:n:n], rest...)
	if err != nil || len(text) == 0 {
		return nil, nil //nolint:nilerr,nilnil // the command's program has begun, and nobody holds the other end any more
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the command's first words: %w", err)
	}
	if r.Failed != "" {
		return nil, errors.New(r.Failed)
	}
	return &r, nil
}

// listen obeys ralph until it hangs up, which means that everything has to end.
func (h *helper) listen(conn *net.UnixConn) {
	var word [1]byte
	for {
		if _, err := io.ReadFull(conn, word[:]); err != nil {
			h.end()
			return
		}
		h.mu.Lock()
		if h.root > 0 && word[0] == askToEnd {
			_ = unix.Kill(-h.root, unix.SIGTERM)
		}
		h.mu.Unlock()
	}
}

// end kills everything that comes from here.
func (h *helper) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	killDescendants()
}

// await reaps orphans until the command has ended, and then ends and reaps all that is left.
func (h *helper) await() (end report) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // ECHILD: nobody is left, and orphans come to us
			return end
		}
		h.mu.Lock()
		if pid == h.root {
			h.root, h.over = 0, true
			end = report{Code: ws.ExitStatus()}
			if ws.Signaled() {
				end.Signal = int(ws.Signal())
			}
		}
		if h.over {
			killDescendants()
		}
		h.mu.Unlock()
	}
}

// freezeRounds bounds how often new processes are looked for while all known ones stand still.
const freezeRounds = 100

// killDescendants kills every process that comes from this one. They are stopped first: what stands still starts
// nothing, so that the killing overtakes a fork bomb.
func killDescendants() {
	stopped := make(map[int]bool)
	for range freezeRounds {
		fresh := false
		pids, _ := native.Descendants(os.Getpid()) // the next reaped child brings the next look
		for _, pid := range pids {
			if !stopped[pid] {
				stopped[pid], fresh = true, true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// forward leads what the command sends to the doors out to the egress socket, until stop is called.
func (g *gate) forward(socket string) (stop func(), err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	f, err := g.forwarder(ctx, socket)
	if err != nil {
		cancel(err)
		return nil, err
	}
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) }) // without it the command has no network, which it sees
	return func() {
		cancel(nil)
		running.Wait()
	}, nil
}
