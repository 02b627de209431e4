package native

import (
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	buffer = 64 << 10 // what a pipe holds
	// lateOutput is how long output may still come after the first process has said that nothing of the command is left.
	lateOutput = 200 * time.Millisecond
	// lateInput is how long a Read of Command.Stdin is waited for after the command's end.
	lateInput = time.Second
	// mostLate bounds what is still taken from a pipe after that: the largest pipe an ordinary user can make.
	mostLate = 1 << 20
)

// pipes connect a command's standard files with a Command's reader and writers. The command has the other ends of real
// pipes, so nothing in between can stall or lie about what passes.
type pipes struct {
	inside  [3]*os.File // the command's ends
	stdin   *os.File    // our end; nil without Stdin
	outputs [2]*os.File // our ends; nil where nothing is copied
	copying sync.WaitGroup
	fed     chan struct{}
	failed  chan error // Stdin failed
}

// openPipes makes the pipes; uid is who must be able to open them again by name (/dev/stdout), -1 the user itself.
func openPipes(c *sandboxes.Command, uid, gid int) (f *pipes, err error) {
	f = &pipes{fed: make(chan struct{}), failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			f.closeInside()
			f.abandon()
		}
	}()
	if c.Stdin == nil {
		if f.inside[0], err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
	} else if f.inside[0], f.stdin, err = os.Pipe(); err != nil {
		return nil, err
	}
	for i, w := range [...]io.Writer{c.Stdout, c.Stderr} {
		switch {
		case w == nil:
			f.inside[i+1], err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		case i == 1 && same(c.Stdout, w):
			f.inside[2] = f.inside[1]
		default:
			f.outputs[i], f.inside[i+1], err = os.Pipe()
		}
		if err != nil {
			return nil, err
		}
	}
	if uid >= 0 {
		for _, file := range [...]*os.File{f.stdin, f.outputs[0], f.outputs[1]} {
			if file != nil {
				if err := file.Chown(uid, gid); err != nil {
					return nil, err
				}
			}
		}
	}
	return f, nil
}

// same reports whether both are one writer.
func same(a, b io.Writer) bool {
	return a != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

func (f *pipes) closeInside() {
	for i, file := range f.inside {
		if file != nil && (i == 0 || file != f.inside[i-1]) {
			_ = file.Close()
		}
	}
}

func (f *pipes) abandon() {
	for _, file := range [...]*os.File{f.stdin, f.outputs[0], f.outputs[1]} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// start copies in the background.
func (f *pipes) start(c *sandboxes.Command) {
	if f.stdin == nil {
		close(f.fed)
	} else {
		go f.feed(c.Stdin)
	}
	for i, w := range [...]io.Writer{c.Stdout, c.Stderr} {
		if r := f.outputs[i]; r != nil {
			f.copying.Go(func() { copyOutput(w, r) })
		}
	}
}

// feed gives the command its input. It closes the pipe only after all of it: a command whose input failed must not take
// what it got for the whole.
func (f *pipes) feed(from io.Reader) {
	defer close(f.fed)
	_, err := io.Copy(f.stdin, from)
	switch {
	case err == nil:
		_ = f.stdin.Close()
	case errors.Is(err, unix.EPIPE), errors.Is(err, os.ErrClosed):
	default:
		f.failed <- err
	}
}

// finish ends the copying once nothing of the command is left. What is in the pipes still reaches the writers.
func (f *pipes) finish() {
	if f.stdin != nil {
		_ = f.stdin.Close()
	}
	for _, r := range f.outputs {
		if r != nil {
			_ = r.SetReadDeadline(time.Now().Add(lateOutput))
		}
	}
	f.copying.Wait()
	f.abandon()
	t := time.NewTimer(lateInput)
	defer t.Stop()
	select {
	case <-f.fed:
	case <-t.C:
	}
}

// copyOutput copies to the end of r. After an error of w it reads on and discards, so that the command does not block.
func copyOutput(w io.Writer, r *os.File) {
	buf := make([]byte, buffer)
	for {
		n, err := r.Read(buf)
		w = pass(w, buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			copyRest(w, r, buf)
		}
		if err != nil {
			return
		}
	}
}

// copyRest copies what the pipe holds now. A slow writer may have met the deadline with output still unread; a process
// that writes on must not hold us.
func copyRest(w io.Writer, r *os.File, buf []byte) {
	conn, err := r.SyscallConn()
	if err != nil || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		for left := mostLate; left > 0; {
			n, err := unix.Read(int(fd), buf)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				break
			}
			w = pass(w, buf[:n])
			left -= n
		}
		return true
	})
}

// pass writes p and returns the writer for what follows: nil after an error.
func pass(w io.Writer, p []byte) io.Writer {
	if w == nil || len(p) == 0 {
		return w
	}
	if _, err := w.Write(p); err != nil {
		return nil
	}
	return w
}
