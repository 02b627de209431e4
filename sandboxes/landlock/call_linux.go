package landlock

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	// defaultGrace is the time from asking a command to end to killing it.
	defaultGrace = 10 * time.Second
	// answerLimit is how long the helper may take to end a command before the host side does it.
	answerLimit = 30 * time.Second

	maxOrder  = 16 << 20 // more than the system takes as arguments and environment
	maxReport = 16 << 10
)

// order is a command as the helper gets it. Gob keeps every byte of arguments and paths.
type order struct {
	Plan      plan
	Argv, Env []string
	Dir       string
}

// report is how a command ended, or why it did not begin.
type report struct {
	Code    int    `json:"code,omitempty"`
	Signal  int    `json:"signal,omitempty"`
	Refused string `json:"refused,omitempty"`
	Cause   string `json:"cause,omitempty"` // of Refused: not-found, permission
	Failed  string `json:"failed,omitempty"`
	Killed  cost   `json:"killed,omitzero"`
}

// cost is how many processes limits have cost that are held by looking.
type cost struct {
	Memory int `json:"memory,omitempty"`
	PIDs   int `json:"pids,omitempty"`
}

const (
	causeNotFound   = "not-found"
	causePermission = "permission"
)

// askToEnd is the byte that asks the helper to ask its command to end. The end of the conversation means to kill it.
const askToEnd = 't'

// call starts a helper for a command, and returns when nothing of both is left.
func (s *sandbox) call(ctx context.Context, cmd sandboxes.Command) (report, error) {
	conn, theirs, err := pair()
	if err != nil {
		return report{}, err
	}
	defer func() { _ = conn.Close() }()
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	done := make(chan struct{})
	talking := make(chan struct{})
	go func() {
		defer close(talking)
		if err := send(conn, s.order(cmd)); err != nil {
			_ = conn.CloseWrite() // the helper ends, or has ended
			return
		}
		s.attend(ctx, conn, cmd, done, cancel)
	}()
	_, err = proc.Run(hard, proc.Spec{
		Argv: []string{"/proc/self/exe", helperWord, roleHelper}, Dir: "/", Env: helperEnv(),
		Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr, Extra: []*os.File{theirs},
	})
	_ = theirs.Close()
	close(done)
	r, readErr := readReport(conn)
	_ = conn.Close()
	<-talking
	var start *proc.StartError
	switch {
	case errors.As(err, &start):
		return r, fmt.Errorf("start the helper: %w", start.Err)
	case err != nil:
		return r, fmt.Errorf("%s: %w", cmd.Argv[0], err)
	case readErr != nil:
		// What the helper would have ended is ended with all else of the run: nobody knows any more whose is whose.
		return r, errors.Join(fmt.Errorf("the helper of %s was killed, perhaps for want of memory: %w", cmd.Argv[0], readErr),
			proc.KillMarked(context.WithoutCancel(ctx), s.plan.Run))
	case r.Failed != "":
		return r, errors.New(r.Failed)
	}
	return r, nil
}

// markName is the variable by which package proc finds a run's processes again. Commands have it, and their helper has
// not: it is to outlive them, and to end what has lost the mark.
const markName = "RALPH_MARK="

// helperEnv is the environment of the helper. Few threads are enough for it.
func helperEnv() []string { return []string{"GOMAXPROCS=2", "GOTRACEBACK=none"} }

// attend tells the helper when its command has to end, until done.
func (s *sandbox) attend(ctx context.Context, conn *net.UnixConn, cmd sandboxes.Command, done <-chan struct{}, cancel context.CancelCauseFunc) {
	interrupt := cmd.Interrupt
	var grace <-chan time.Time
	for waiting := true; waiting; {
		select {
		case <-done:
			return
		case <-interrupt:
			interrupt = nil
			_, _ = conn.Write([]byte{askToEnd})
			d := cmd.Grace
			if d <= 0 {
				d = defaultGrace
			}
			t := time.NewTimer(d)
			defer t.Stop()
			grace = t.C
		case <-grace:
			waiting = false
		case <-ctx.Done():
			waiting = false
		case <-s.closing:
			waiting = false
		}
	}
	_ = conn.CloseWrite()
	t := time.NewTimer(answerLimit)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		cancel(fmt.Errorf("its helper has not ended it for %s", answerLimit))
	}
}

// pair returns both ends of a conversation.
func pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "conversation")
	ours, err = connect(os.NewFile(uintptr(fds[0]), "conversation"))
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// connect makes a connection of a file, which it closes.
func connect(file *os.File) (*net.UnixConn, error) {
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	if c, ok := conn.(*net.UnixConn); ok {
		return c, nil
	}
	_ = conn.Close()
	return nil, errors.New("it is not a unix socket")
}

// send sends an order, after its length.
func send(to io.Writer, o order) error {
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(o); err != nil {
		return err
	}
	packet := binary.BigEndian.AppendUint32(nil, uint32(text.Len()))
	_, err := to.Write(append(packet, text.Bytes()...))
	return err
}

// receive takes an order, whose sender is trusted, and nothing that follows it.
func receive(from io.Reader) (o order, err error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return o, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxOrder {
		return o, fmt.Errorf("%d bytes of arguments and environment are too many", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(from, text); err != nil {
		return o, err
	}
	return o, gob.NewDecoder(bytes.NewReader(text)).Decode(&o)
}

// readReport takes what the helper says last.
func readReport(from io.Reader) (r report, err error) {
	text, err := io.ReadAll(io.LimitReader(from, maxReport))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// tell says how it went. What is too long is cut.
func tell(to io.Writer, r report) error {
	const most = maxReport / 8
	r.Refused, r.Failed = r.Refused[:min(len(r.Refused), most)], r.Failed[:min(len(r.Failed), most)]
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = to.Write(text)
	return err
}
