package container

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Kinds of frames between an Exec and its helper inside. Each frame is its kind, the length of its payload (four bytes,
// big endian) and the payload.
const (
	// To the helper.
	frameCommand   = 'c' // JSON of an order; the first frame
	frameInput     = 'i' // bytes for the command's standard input
	frameInputEnd  = 'e'
	frameTerminate = 't' // SIGTERM to the command's process group
	frameKill      = 'k' // SIGKILL to everything
	// From the helper.
	frameStarted = 's' // the command runs
	frameRefused = 'f' // JSON of a refusal: the command could not be started
	frameStdout  = 'o'
	frameStderr  = 'r'
	frameTaken   = 'a' // one input frame was consumed
	frameExit    = 'x' // JSON of a report: everything has ended
)

const (
	headSize = 5
	// maxFrame bounds what the other end can make us hold. Arguments and environment are in one frame.
	maxFrame = 16 << 20
	// chunk is the most bytes of input or output in one frame.
	chunk = 32 << 10
	// window is how many input frames may be under way: the command may not read, and a frame that asks it to end must
	// still arrive.
	window = 8
)

// order is a command as the helper gets it. Byte slices, because arguments need not be UTF-8.
type order struct {
	Argv [][]byte `json:"argv"`
	Dir  []byte   `json:"dir"`
	Env  [][]byte `json:"env"`
}

// refusal says why a command could not be started.
type refusal struct {
	Reason string `json:"reason"` // one of the reasons below, or empty
	Text   string `json:"text"`
}

const (
	reasonNotFound = "not-found" // not in any folder of PATH
	reasonMissing  = "missing"
	reasonDenied   = "denied"
)

// report is how a command ended.
type report struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Killed is how many processes the container's memory limit has cost, from its beginning.
	Killed int `json:"killed,omitempty"`
}

// frameWriter writes frames, from any goroutine.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// send writes one frame in one Write.
func (f *frameWriter) send(kind byte, payload []byte) error {
	b := make([]byte, headSize, headSize+len(payload))
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	b = append(b, payload...)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.w.Write(b)
	return err
}

// frameReader is a writer that calls on with each whole frame; the payload is only valid during the call. It belongs
// to one goroutine. After an error, its own or one of on, it takes nothing more.
type frameReader struct {
	on  func(kind byte, payload []byte) error
	buf []byte // the frame so far, when it spans writes
	err error
}

// Write takes bytes as they come.
func (f *frameReader) Write(p []byte) (int, error) {
	n := len(p)
	for f.err == nil && len(p) > 0 {
		if len(f.buf) < headSize {
			k := min(headSize-len(f.buf), len(p))
			f.buf, p = append(f.buf, p[:k]...), p[k:]
			if len(f.buf) < headSize {
				break
			}
		}
		size := int(binary.BigEndian.Uint32(f.buf[1:headSize]))
		if size > maxFrame {
			f.err = fmt.Errorf("read a frame: %d bytes are more than %d", size, maxFrame)
			break
		}
		k := min(headSize+size-len(f.buf), len(p))
		f.buf, p = append(f.buf, p[:k]...), p[k:]
		if len(f.buf) < headSize+size {
			break
		}
		f.err = f.on(f.buf[0], f.buf[headSize:])
		f.buf = f.buf[:0]
		if cap(f.buf) > 4*chunk {
			f.buf = nil
		}
	}
	if f.err != nil {
		return 0, f.err
	}
	return n, nil
}
