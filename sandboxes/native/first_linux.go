package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// first is a sandbox's first process as the host side has it.
type first struct {
	process *os.Process
	conn    *net.UnixConn
	words   *proc.Tail    // what it says when it crashes
	gone    chan struct{} // closed when it has ended, and with it every process of the sandbox
}

// allNamespaces are the sandbox's own.
const allNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// startFirst starts the first process in namespaces of its own. It waits for its plan.
func startFirst(run string, who identity) (*first, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	conn, err := connect(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	words, wordsIn, err := os.Pipe()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	defer func() { _ = wordsIn.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_, _ = conn.Close(), words.Close()
		return nil, err
	}
	defer func() { _ = null.Close() }()

	f := &first{conn: conn, words: proc.NewTail(4 << 10), gone: make(chan struct{})}
	started := make(chan error, 1)
	go f.guard(words, started, func() (*os.Process, error) {
		return startApart(run, allNamespaces, null, null, wordsIn, theirs)
	})
	if err := <-started; err != nil {
		_ = conn.Close()
		return nil, err
	}
	if err := who.mapTo(f.process.Pid); err != nil {
		return nil, f.broken(err)
	}
	return f, nil
}

// guard starts the first process and waits for it, on one thread: the kernel kills the process when the thread that
// started it ends, and so when ralph does.
func (f *first) guard(words *os.File, started chan<- error, start func() (*os.Process, error)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := start()
	if err != nil {
		_ = words.Close()
		started <- err
		return
	}
	f.process = p
	started <- nil
	var listening sync.WaitGroup
	listening.Go(func() { _, _ = io.Copy(f.words, words) })
	_, _ = p.Wait()
	_ = f.conn.Close()
	listening.Wait() // nobody else holds the other end
	_ = words.Close()
	close(f.gone)
}

// kill ends the sandbox and everything in it.
func (f *first) kill(ctx context.Context) error {
	_ = f.process.Kill() // it may have ended
	select {
	case <-f.gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handOver gives the first process its plan and waits until it says that commands can run.
func (f *first) handOver(ctx context.Context, p *plan, given []*os.File) error {
	if err := send(f.conn, p, given...); err != nil {
		return f.broken(fmt.Errorf("send the plan: %w", err))
	}
	stop := context.AfterFunc(ctx, func() { _ = f.process.Kill() })
	defer stop()
	e, err := f.hear(make([]byte, maxPacket))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return f.broken(err)
	case e.Kind == kindReady:
		return nil
	case e.Kind == kindFailed:
		return errors.New(e.Error)
	}
	return fmt.Errorf("its first process says %q in the place of being ready", e.Kind)
}

// hear takes what the first process says next.
func (f *first) hear(buf []byte) (event, error) {
	n, err := f.conn.Read(buf)
	if err != nil {
		return event{}, err
	}
	return decodeEvent(buf[:n])
}

// broken adds to an error what the first process said last.
func (f *first) broken(err error) error {
	_ = f.process.Kill()
	<-f.gone
	if words := strings.TrimSpace(f.words.String()); words != "" {
		line, _, _ := strings.Cut(words, "\n")
		return fmt.Errorf("its first process ended (%s): %w", line, err)
	}
	return fmt.Errorf("its first process ended: %w", err)
}
