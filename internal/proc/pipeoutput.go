package proc

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstBuffer = 4 << 10  // enough for most output of git
	fullBuffer  = 64 << 10 // default capacity of a pipe
	largestPipe = 1 << 20  // capacity that an ordinary user can give a pipe
)

// copyOutput copies r to w until its end. After an error of w it reads on and discards, so that the process does not block.
func copyOutput(w io.Writer, r *os.File) {
	buf := make([]byte, firstBuffer)
	for {
		n, err := r.Read(buf)
		w = pass(w, buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			copyRest(w, r, buf)
		}
		if err != nil {
			return
		}
		if n == len(buf) && n < fullBuffer {
			buf = make([]byte, 4*n)
		}
	}
}

// copyRest copies what the pipe holds now. After the deadline, output of the ended process may still be unread because the
// writer was slow; but a process that escaped and keeps writing must not keep copyRest busy.
func copyRest(w io.Writer, r *os.File, buf []byte) {
	conn, err := r.SyscallConn()
	if err != nil || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		for left := largestPipe; left > 0; {
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

// pass writes p and returns the writer for later writes: nil after an error.
func pass(w io.Writer, p []byte) io.Writer {
	if w == nil || len(p) == 0 {
		return w
	}
	if _, err := w.Write(p); err != nil {
		return nil
	}
	return w
}
