package sandboxtest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// lifeline shows whether processes live, without their PIDs, which mean nothing outside a container: each holds the
// write end of a FIFO in the worktree, or in what is shared, and its end of file is their death. A zombie holds nothing.
//
// This process never has the write end: what it forks meanwhile, for any test, would have a copy until some moment after
// its exec, at which the kernel closes it, and for that long count as a process inside.
type lifeline struct {
	*room
	read   *os.File
	lines  *bufio.Reader
	keeper *exec.Cmd // keeps the end of file away until the processes hold their write ends
	end    io.Closer // its standard input, which ends it
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
	r.Cleanup(func() { _ = l.read.Close() })
	l.keep(path)
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

// keep starts the keeper, and returns when it holds the FIFO.
func (l *lifeline) keep(path string) {
	l.Helper()
	l.keeper = exec.CommandContext(context.WithoutCancel(l.Context()), "sh", "-c", `exec 9>"$1" && echo held && read -r _`, "sh", path)
	in, err := l.keeper.StdinPipe()
	if err != nil {
		l.Fatal(err)
	}
	out, err := l.keeper.StdoutPipe()
	if err != nil {
		l.Fatal(err)
	}
	if err := l.keeper.Start(); err != nil {
		l.Fatal(err)
	}
	l.end = in
	l.Cleanup(l.letGo)
	if said, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		l.Fatalf("the keeper of the lifeline says %q, %v", said, err)
	}
}

// letGo ends the keeper. A process that has been waited for holds nothing any more.
func (l *lifeline) letGo() {
	if l.keeper == nil {
		return
	}
	_ = l.end.Close()
	_ = l.keeper.Wait() // its "read" finds nothing, which is no success
	l.keeper = nil
}

// gone fails the test when a process that holds the lifeline lives at this moment.
func (l *lifeline) gone() {
	l.Helper()
	l.letGo()
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
