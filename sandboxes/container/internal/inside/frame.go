package inside

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Kinds of frames between ralph and the helper that runs a command. Each frame consists of its kind, the length of its
// payload (four bytes, big endian), and the payload.
const (
	// To the helper.
	FrameCommand   = 'c' // JSON of a Command; the first frame
	FrameInput     = 'i' // bytes for the command's standard input
	FrameInputEnd  = 'e'
	FrameTerminate = 't' // SIGTERM to the command's process group
	FrameKill      = 'k' // SIGKILL to everything
	// From the helper.
	FrameStarted = 's' // the command has started
	FrameRefused = 'f' // JSON of a Refusal: the command could not be started
	FrameStdout  = 'o'
	FrameStderr  = 'r'
	FrameTaken   = 'a' // one input frame was consumed
	FrameExit    = 'x' // JSON of a Report: all processes of the command have ended
)

const (
	headSize = 5
	// MaxFrame is the maximum payload in bytes. It bounds the memory of the receiver. Arguments and environment are in one
	// frame.
	MaxFrame = 16 << 20
	// Chunk is the maximum number of input bytes in one frame.
	Chunk = 32 << 10
	// Window is the maximum number of unacknowledged input frames. It keeps the connection usable: even if the command does
	// not read its input, a terminate or kill frame must arrive.
	Window = 8
)

// Command is the command to run, as byte slices because arguments need not be UTF-8.
type Command struct {
	Argv [][]byte `json:"argv"`
	Dir  []byte   `json:"dir"`
	Env  [][]byte `json:"env"`
}

// Refusal is the reason why a command could not be started.
type Refusal struct {
	Reason string `json:"reason"` // one of the constants below, or ""
	Text   string `json:"text"`
}

const (
	ReasonNotFound = "not-found" // in no folder of PATH
	ReasonMissing  = "missing"
	ReasonDenied   = "denied"
)

// Report describes how a command ended.
type Report struct {
	Exit sandboxes.Exit `json:"exit"`
	// Killed is the number of processes killed at the container's memory limit since the container started.
	Killed int `json:"killed,omitempty"`
	// Refused is how often the container's process limit has refused a new process or thread since then.
	Refused int `json:"refused,omitempty"`
}

// Counts are the highest counts of a container's reports. They are safe for concurrent use.
type Counts struct {
	mu              sync.Mutex
	killed, refused int // guarded by mu
}

// Add adds a report.
func (c *Counts) Add(r Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed, c.refused = max(c.killed, r.Killed), max(c.refused, r.Refused)
}

// Notices tells what the counts mean with the container's limits.
func (c *Counts) Notices(l sandboxes.Limits) (list []sandboxes.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed > 0 {
		list = append(list, sandboxes.MemoryNotice(c.killed, l.Memory))
	}
	if c.refused > 0 {
		list = append(list, sandboxes.PIDsReached(l.PIDs))
	}
	return list
}

// FrameWriter writes frames. It is safe for concurrent use.
type FrameWriter struct {
	W io.Writer // guarded by mu

	mu sync.Mutex
}

// Send writes one frame with one Write.
func (f *FrameWriter) Send(kind byte, payload []byte) error {
	b := make([]byte, headSize, headSize+len(payload))
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	b = append(b, payload...)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.W.Write(b)
	return err
}

// FrameReader is a writer that calls On with each complete frame; the payload is valid only during the call. It is used by
// one goroutine. After an error of On or of its own, it accepts nothing more.
type FrameReader struct {
	On  func(kind byte, payload []byte) error
	Err error

	buf []byte // start of a frame that spans writes
}

// Write implements io.Writer.
func (f *FrameReader) Write(p []byte) (int, error) {
	n := len(p)
	for f.Err == nil && len(p) > 0 {
		if len(f.buf) < headSize {
			k := min(headSize-len(f.buf), len(p))
			f.buf, p = append(f.buf, p[:k]...), p[k:]
			if len(f.buf) < headSize {
				break
			}
		}
		size := int(binary.BigEndian.Uint32(f.buf[1:headSize]))
		if size > MaxFrame {
			f.Err = fmt.Errorf("read a frame: %d bytes are more than %d", size, MaxFrame)
			break
		}
		k := min(headSize+size-len(f.buf), len(p))
		f.buf, p = append(f.buf, p[:k]...), p[k:]
		if len(f.buf) < headSize+size {
			break
		}
		f.Err = f.On(f.buf[0], f.buf[headSize:])
		f.buf = f.buf[:0]
		if cap(f.buf) > 4*Chunk {
			f.buf = nil
		}
	}
	if f.Err != nil {
		return 0, f.Err
	}
	return n, nil
}
