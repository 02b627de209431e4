package sandboxtest

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
)

// lifeline shows whether processes live without their PIDs, which are useless outside a container. Each process has the
// write end of a FIFO open, which is in the worktree or in the shared folder. End of file means that all have ended; a
// zombie has no open files.
//
// This process never opens the write end: any process that another test forks would inherit a copy until its exec, and
// would look like a process inside.
type lifeline struct {
	*room
	read        *os.File
	lines       *bufio.Reader
	holderInput io.Closer     // standard input of the holder, which keeps the write end open until the processes have opened it
	holderEnded chan struct{} // closed when the holder has ended
}

// holdScript is the part of a script with which the shell and its children open the lifeline. Each "echo ready >&9" counts for
// ready.
const holdScript = "exec 9>\"${LIFELINE:-lifeline}\"\n"

func (r *room) lifeline() *lifeline {
	r.Helper()
	path := r.pipe
	l := &lifeline{room: r, read: fifo(r.T, path)}
	l.startHolder(path)
	l.lines = bufio.NewReader(l.read)
	return l
}

// fifo creates a FIFO that everybody can write to, and opens it for reading.
func fifo(t *testing.T, path string) *os.File {
	t.Helper()
	if err := unix.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // the umask may have removed permissions
		t.Fatal(err)
	}
	read, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	return read
}

// awaitReady waits for n ready lines from the processes.
func (l *lifeline) awaitReady(n int) {
	l.Helper()
	_ = l.read.SetReadDeadline(time.Now().Add(limit))
	for range n {
		if _, err := l.lines.ReadString('\n'); err != nil {
			l.Fatalf("waiting for the processes inside: %v", err)
		}
	}
}

// startHolder starts the holder, and returns when it has opened the FIFO.
func (l *lifeline) startHolder(path string) {
	l.Helper()
	in, end := io.Pipe()
	out, holderOutput := io.Pipe()
	l.holderInput, l.holderEnded = end, make(chan struct{})
	ctx := context.WithoutCancel(l.Context())
	go func() {
		defer close(l.holderEnded)
		// At the end "read" finds end of file, so the exit status is not 0.
		_, err := proc.Run(ctx, proc.Spec{
			Argv: []string{"sh", "-c", `exec 9>"$1" && echo held && read -r _`, "sh", path}, Dir: filepath.Dir(path), Env: os.Environ(),
			Stdin: in, Stdout: holderOutput,
		})
		_ = holderOutput.CloseWithError(err)
	}()
	l.Cleanup(l.endHolder)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		l.Fatalf("the holder of the lifeline prints %q, %v", line, err)
	}
}

// endHolder ends the holder.
func (l *lifeline) endHolder() {
	_ = l.holderInput.Close()
	<-l.holderEnded
}

// expectGone fails the test if a process with the lifeline open still lives.
func (l *lifeline) expectGone() {
	l.Helper()
	l.endHolder()
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
