package sandboxtest

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// lifeline shows whether processes live, without their PIDs, which mean nothing outside a container: each holds the
// write end of a FIFO in the worktree, or in what is shared, and its end of file is their death. A zombie holds nothing.
//
// This process never has the write end: what it forks meanwhile, for any test, would have a copy until some moment after
// its exec, at which the kernel closes it, and for that long count as a process inside.
type lifeline struct {
	*room
	read  *os.File
	lines *bufio.Reader
	end   io.Closer     // the standard input of the keeper, which keeps the end of file away until the processes hold theirs
	kept  chan struct{} // closed when the keeper has ended
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
	in, end := io.Pipe()
	out, said := io.Pipe()
	l.end, l.kept = end, make(chan struct{})
	ctx := context.WithoutCancel(l.Context())
	go func() {
		defer close(l.kept)
		// Its "read" finds nothing in the end, which is no success.
		_, err := proc.Run(ctx, proc.Spec{
			Argv: []string{"sh", "-c", `exec 9>"$1" && echo held && read -r _`, "sh", path}, Dir: filepath.Dir(path), Env: os.Environ(),
			Stdin: in, Stdout: said,
		})
		_ = said.CloseWithError(err)
	}()
	l.Cleanup(l.letGo)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		l.Fatalf("the keeper of the lifeline says %q, %v", line, err)
	}
}

// letGo ends the keeper. A process that has been waited for holds nothing any more.
func (l *lifeline) letGo() {
	_ = l.end.Close()
	<-l.kept
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
