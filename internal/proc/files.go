package proc

import (
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstBuffer = 4 << 10  // enough for most of what git says
	fullBuffer  = 64 << 10 // what a pipe holds
	// lateOutput is how long output may still come after the whole tree has ended. Only a process that escaped the
	// killing can use it.
	lateOutput = 200 * time.Millisecond
	// lateInput is how long a Read of Spec.Stdin is waited for after the process has ended.
	lateInput = time.Second
)

// plumbing connects a process's standard files with a Spec's reader and writers.
type plumbing struct {
	ends    [3]*os.File // the process's ends
	stdin   *os.File    // our end; nil without Spec.Stdin
	outputs [2]*os.File // our ends of stdout and stderr; nil where nothing is copied
	copying sync.WaitGroup
	fed     chan struct{} // closed when the copying of stdin has ended; nil without Spec.Stdin
	failed  chan error    // Spec.Stdin failed
}

// open makes the pipes. On an error nothing stays open.
func (f *plumbing) open(s *Spec) (err error) {
	defer func() {
		if err != nil {
			f.closeChild()
			f.abandon()
		}
	}()
	if s.Stdin == nil || s.Stdout == nil || s.Stderr == nil {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		f.ends = [3]*os.File{null, null, null}
	}
	if s.Stdin != nil {
		if f.ends[0], f.stdin, err = os.Pipe(); err != nil {
			return err
		}
	}
	if s.Stdout != nil {
		if f.outputs[0], f.ends[1], err = os.Pipe(); err != nil {
			return err
		}
	}
	if s.Stderr != nil {
		if same(s.Stdout, s.Stderr) {
			f.ends[2] = f.ends[1]
			return nil
		}
		if f.outputs[1], f.ends[2], err = os.Pipe(); err != nil {
			return err
		}
	}
	return nil
}

// same reports whether both are one writer.
func same(a, b io.Writer) bool {
	return a != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

// child gives the process's ends as descriptors.
func (f *plumbing) child() []uintptr {
	return []uintptr{f.ends[0].Fd(), f.ends[1].Fd(), f.ends[2].Fd()}
}

// closeChild closes the process's ends on our side; a file may be in more than one place.
func (f *plumbing) closeChild() {
	for i, file := range f.ends {
		if file != nil && (i == 0 || file != f.ends[i-1]) {
			_ = file.Close()
		}
	}
}

// abandon closes our ends.
func (f *plumbing) abandon() {
	for _, file := range [...]*os.File{f.stdin, f.outputs[0], f.outputs[1]} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// start copies in the background.
func (f *plumbing) start(s *Spec) {
	if f.stdin != nil {
		f.fed, f.failed = make(chan struct{}), make(chan error, 1)
		go f.feed(s.Stdin)
	}
	for i, w := range [...]io.Writer{s.Stdout, s.Stderr} {
		if r := f.outputs[i]; r != nil {
			f.copying.Go(func() { copyOutput(w, r) })
		}
	}
}

// feed gives the process its input. It closes the pipe only after all of it: a process whose input failed must not take
// what it got for the whole.
func (f *plumbing) feed(from io.Reader) {
	defer close(f.fed)
	_, err := io.Copy(f.stdin, from)
	switch {
	case err == nil:
		_ = f.stdin.Close()
	case errors.Is(err, unix.EPIPE), errors.Is(err, os.ErrClosed):
		// The process reads no further.
	default:
		f.failed <- err
	}
}

// finish ends the copying, once the process tree has ended. What is in the pipes still reaches the writers.
func (f *plumbing) finish() {
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
	if f.fed == nil {
		return
	}
	select {
	case <-f.fed:
	default:
		t := time.NewTimer(lateInput)
		defer t.Stop()
		select {
		case <-f.fed:
		case <-t.C:
		}
	}
}

// copyOutput copies to the end of r. After an error of w it reads on and discards, so that the process does not block.
func copyOutput(w io.Writer, r *os.File) {
	buf := make([]byte, firstBuffer)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			w = pass(w, buf[:n])
		}
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				copyBuffered(w, r, buf)
			}
			return
		}
		if n == len(buf) && n < fullBuffer {
			buf = make([]byte, 4*n)
		}
	}
}

// copyBuffered copies what the pipe holds now. A slow writer may have met the deadline with output of the ended process
// still unread; a process that escaped and writes on must not hold us.
func copyBuffered(w io.Writer, r *os.File, buf []byte) {
	const most = 1 << 20 // the largest pipe an ordinary user can make
	conn, err := r.SyscallConn()
	if err != nil || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		for left := most; left > 0; {
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
	if w == nil {
		return nil
	}
	if _, err := w.Write(p); err != nil {
		return nil
	}
	return w
}
