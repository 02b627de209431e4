package sandboxtest

import (
	"bufio"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lifeline shows whether processes live, without their PIDs, which mean nothing outside a container: each holds the
// write end of a FIFO in the worktree, or in what is shared, and its end of file is their death. A zombie holds nothing.
type lifeline struct {
	*room
	read, write *os.File
	lines       *bufio.Reader
}

// hold is the script that makes the shell and all it starts hold the lifeline. Each "echo ready >&9" is one ready.
const hold = "exec 9>\"${LIFELINE:-lifeline}\"\n"

func (r *room) lifeline() *lifeline {
	r.Helper()
	path := r.pipe
	if err := unix.Mkfifo(path, 0o666); err != nil {
		r.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // whatever the umask
		r.Fatal(err)
	}
	l := &lifeline{room: r}
	var err error
	if l.read, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err != nil {
		r.Fatal(err)
	}
	// Our own write end keeps the end of file away until the processes hold theirs.
	if l.write, err = os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _, _ = l.read.Close(), l.write.Close() })
	l.lines = bufio.NewReader(l.read)
	return l
}

// ready waits until n processes have said that they hold the lifeline.
func (l *lifeline) ready(n int) {
	l.Helper()
	_ = l.read.SetReadDeadline(time.Now().Add(limit))
	for range n {
		if _, err := l.lines.ReadString('\n'); err != nil {
			l.Fatalf("waiting for the processes inside: %v", err)
		}
	}
}

// gone fails the test when a process that holds the lifeline lives at this moment.
func (l *lifeline) gone() {
	l.Helper()
	// A process that this one forks, anywhere, has copies of our descriptors until its exec. Hold forking off.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	_ = l.write.Close()
	_ = l.read.SetReadDeadline(time.Time{})
	conn, err := l.read.SyscallConn()
	if err != nil {
		l.Fatal(err)
	}
	var n int
	var readErr error
	err = conn.Read(func(fd uintptr) bool {
		var buf [512]byte
		for {
			n, readErr = unix.Read(int(fd), buf[:])
			if readErr != unix.EINTR && n <= 0 {
				return true
			}
		}
	})
	if err != nil {
		l.Fatal(err)
	}
	if readErr != nil {
		l.Errorf("a process inside has outlived its end (%v)", readErr)
	}
}
