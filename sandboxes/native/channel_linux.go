package native

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

// The host side and the first process inside talk over a pair of sockets that keeps messages apart. What goes in is gob,
// which keeps every byte of arguments and paths, after a letter that says where it is: in the packet itself, or in a file
// that comes with it. What comes out is JSON, whose decoder is made for senders that are not trusted.
const (
	inPacket = 'p'
	inFile   = 'f'

	maxPacket  = 16 << 10
	maxMessage = 16 << 20 // more than the system takes as arguments and environment
	maxFiles   = 250      // the kernel's limit is 253 a message
)

// request is what the host side asks for.
type request struct {
	ID   uint64
	Op   string // exec (with three files), signal, kill
	Argv []string
	Env  []string
	Dir  string
}

// event is what the first process says. The host side takes it as a hint from the other side of the wall: it believes
// what it says about its own command and nothing else.
type event struct {
	ID     uint64 `json:"id"`
	Kind   string `json:"kind"` // ready, failed, refused, exited, killed
	Code   int    `json:"code,omitempty"`
	Signal int    `json:"signal,omitempty"`
	Cause  string `json:"cause,omitempty"` // of refused: not-found, permission; of killed: memory, pids
	Error  string `json:"error,omitempty"`
}

const (
	opExec   = "exec"
	opSignal = "signal"
	opKill   = "kill"

	kindReady   = "ready"
	kindFailed  = "failed"
	kindRefused = "refused"
	kindExited  = "exited"
	kindKilled  = "killed" // a process, by the watch over a limit

	causeNotFound   = "not-found"
	causePermission = "permission"
	causeMemory     = "memory"
	causePIDs       = "pids"
)

// send sends one message with files, which stay open here.
func send(conn *net.UnixConn, message any, files ...*os.File) error {
	packet, err := encode(message)
	if err != nil {
		return err
	}
	body := packet[1:]
	if len(packet) > maxPacket {
		if len(body) > maxMessage {
			return fmt.Errorf("%d bytes of arguments and environment are too many", len(body))
		}
		file, err := memory(body)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		packet, files = []byte{inFile}, append([]*os.File{file}, files...)
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = conn.WriteMsgUnix(packet, rights, nil)
	for _, f := range files { // they were in use until here
		_ = f.Name()
	}
	return err
}

// encode returns a packet with the whole message in it.
func encode(message any) ([]byte, error) {
	if e, ok := message.(event); ok {
		body, err := json.Marshal(e)
		return append([]byte{inPacket}, body...), err
	}
	packet := bytes.NewBuffer([]byte{inPacket})
	err := gob.NewEncoder(packet).Encode(message)
	return packet.Bytes(), err
}

// memory returns an unnamed file in memory with this content, read from its start.
func memory(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("ralph", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "message")
	if _, err := file.WriteAt(content, 0); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write a file in memory: %w", err)
	}
	return file, nil
}

// receive takes the next message, whose sender is trusted, and its files, which the caller closes. At the end of the
// conversation it returns io.EOF.
func receive(conn *net.UnixConn, message any) (files []*os.File, err error) {
	packet := make([]byte, maxPacket)
	rights := make([]byte, unix.CmsgSpace(maxFiles*4))
	n, nr, _, _, err := conn.ReadMsgUnix(packet, rights)
	if err != nil {
		return nil, err
	}
	if files, err = received(rights[:nr]); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	if n == 0 {
		return nil, io.EOF
	}
	body := packet[1:n]
	if packet[0] == inFile {
		if len(files) == 0 {
			return nil, errors.New("a message's file is missing")
		}
		body, err = io.ReadAll(io.NewSectionReader(files[0], 0, maxMessage))
		_ = files[0].Close()
		files = files[1:]
		if err != nil {
			return nil, err
		}
	}
	return files, gob.NewDecoder(bytes.NewReader(body)).Decode(message)
}

// received turns control messages into open files.
func received(rights []byte) (files []*os.File, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// decodeEvent decodes a packet from inside, whose sender is not trusted.
func decodeEvent(packet []byte) (event, error) {
	var e event
	if len(packet) < 1 || packet[0] != inPacket {
		return e, errors.New("what its first process says cannot be understood")
	}
	if err := json.Unmarshal(packet[1:], &e); err != nil {
		return e, fmt.Errorf("what its first process says cannot be understood: %w", err)
	}
	if len(e.Error) > maxPacket/4 {
		e.Error = e.Error[:maxPacket/4]
	}
	return e, nil
}

// pair returns both ends of a channel.
func pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel"), nil
}

// connect makes a connection of a file, which it closes.
func connect(file *os.File) (*net.UnixConn, error) {
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("the channel is not a unix socket")
	}
	return unixConn, nil
}
