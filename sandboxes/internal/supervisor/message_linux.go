package supervisor

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// The sockets preserve packet boundaries. A message to the supervisor is a memory file in gob format, because gob preserves
// every byte of arguments and paths; the packet only carries the file descriptor. A message from the supervisor is JSON,
// whose decoder is safe for untrusted input.
const (
	maxEvent   = 16 << 10
	maxMessage = 16 << 20 // more than the system's limit of arguments and environment
	maxFiles   = 250      // the kernel's limit is 253 per packet
)

// request is a message to the supervisor. An opExec comes with three files.
type request struct {
	ID   uint64
	Op   string
	Argv []string
	Env  []string
	Dir  string
}

const (
	opExec   = "exec"
	opSignal = "signal"
	opKill   = "kill"
)

// event is a message from the supervisor. The host's side trusts it only for the end of its own commands.
type event struct {
	ID     uint64 `json:"id"`
	Kind   string `json:"kind"`
	Code   int    `json:"code,omitempty"`
	Signal int    `json:"signal,omitempty"`
	Cause  string `json:"cause,omitempty"` // if refused: not-found, permission; if killed: memory, pids
	Error  string `json:"error,omitempty"`
}

const (
	kindHello   = "hello"   // the process serves its role
	kindReady   = "ready"   // commands can run
	kindFailed  = "failed"  // the sandbox could not be opened
	kindRefused = "refused" // a command could not be started
	kindExited  = "exited"
	kindKilled  = "killed" // a process was killed at a limit

	causeNotFound   = "not-found"
	causePermission = "permission"
	causeMemory     = "memory"
	causePIDs       = "pids"
)

// Memory returns an unnamed memory file with the message; see [Decode].
func Memory(message any) (*os.File, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(message); err != nil {
		return nil, err
	}
	if body.Len() > maxMessage {
		return nil, fmt.Errorf("%d bytes of arguments and environment are too many", body.Len())
	}
	fd, err := unix.MemfdCreate("ralph", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "message")
	if _, err := file.WriteAt(body.Bytes(), 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write a file in memory: %w", err)
	}
	return file, nil
}

// Decode decodes a message of a trusted sender from a file of [Memory], and closes the file.
func Decode(file *os.File, message any) error {
	defer func() { _ = file.Close() }()
	return gob.NewDecoder(io.NewSectionReader(file, 0, maxMessage)).Decode(message)
}

// send sends a message with files to the supervisor. The files stay open here.
func send(conn *net.UnixConn, message any, files ...*os.File) error {
	body, err := Memory(message)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	var fds []int
	for _, f := range append([]*os.File{body}, files...) {
		fds = append(fds, int(f.Fd()))
	}
	_, _, err = conn.WriteMsgUnix([]byte{'m'}, unix.UnixRights(fds...), nil)
	for _, f := range files { // keep the files alive until here
		_ = f.Name()
	}
	return err
}

// Receive reads the next message of the host's side and its files, which the caller must close. It returns io.EOF when the
// host's side has closed the connection.
func Receive(conn *net.UnixConn, message any) (files []*os.File, err error) {
	rights := make([]byte, unix.CmsgSpace(maxFiles*4))
	n, nr, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, _ := unix.ParseUnixRights(&m)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	switch {
	case n == 0:
		return nil, io.EOF
	case len(files) == 0:
		return nil, errors.New("a message's file is missing")
	}
	if err := Decode(files[0], message); err != nil {
		closeAll(files[1:])
		return nil, err
	}
	return files[1:], nil
}

// sendEvent sends an event to the host's side. It truncates a long error.
func sendEvent(conn *net.UnixConn, e event) error {
	e.Error = e.Error[:min(len(e.Error), maxEvent/8)]
	packet, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = conn.Write(packet)
	return err
}

// decodeEvent decodes a packet of the supervisor, which is untrusted.
func decodeEvent(packet []byte) (e event, err error) {
	if err := json.Unmarshal(packet, &e); err != nil {
		return event{}, fmt.Errorf("decode a message of the supervisor: %w", err)
	}
	e.Error = e.Error[:min(len(e.Error), maxEvent/4)]
	return e, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// pair returns both ends of a socket pair: a connection for this process, and a file for the supervisor.
func pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "conversation")
	if ours, err = connect(os.NewFile(uintptr(fds[0]), "conversation")); err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// connect converts a file to a connection, and closes the file.
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
	return nil, errors.New("the conversation is not a unix socket")
}
