package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Log returns a writer for loggers: each Write is a whole entry, and values in it are replaced. It is as safe for
// concurrent use as w.
func (s *Secrets) Log(w io.Writer) io.Writer { return logWriter{s, w} }

type logWriter struct {
	secrets *Secrets
	to      io.Writer
}

func (l logWriter) Write(b []byte) (int, error) {
	if _, err := l.to.Write(l.secrets.Finder().Replace(b, Value)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Stream returns a writer for a raw stream. It replaces values line by line and keeps at most StreamLimit bytes. Close calls
// cut with the number of bytes that were left out, if any were. It belongs to one goroutine.
func (s *Secrets) Stream(to io.WriteCloser, cut func(lost int64)) io.WriteCloser {
	return &stream{secrets: s, to: &capped{to: to, left: StreamLimit, cut: cut}}
}

const (
	longLine = 64 << 10 // bytes of a line that are buffered at most
	lineTail = 8 << 10  // bytes kept back of a longer line, for a value that has only begun
)

type stream struct {
	secrets *Secrets
	to      io.WriteCloser
	rest    []byte // a line that has not ended
}

func (m *stream) Write(b []byte) (int, error) {
	m.rest = append(m.rest, b...)
	if bytes.IndexByte(b, '\n') < 0 && len(m.rest) <= longLine {
		return len(b), nil
	}
	m.rest = m.secrets.Finder().Replace(m.rest, Value)
	end := bytes.LastIndexByte(m.rest, '\n') + 1
	if len(m.rest)-end > longLine {
		end = len(m.rest) - lineTail
	}
	if _, err := m.to.Write(m.rest[:end]); err != nil {
		return 0, err
	}
	m.rest = m.rest[:copy(m.rest, m.rest[end:])]
	return len(b), nil
}

func (m *stream) Close() error {
	_, err := m.to.Write(m.secrets.Finder().Replace(m.rest, Value))
	return errors.Join(err, m.to.Close())
}

// StreamLimit is how many bytes of one raw stream are kept, so that what an agent prints cannot fill the disk.
const StreamLimit = 64 << 20

// capped keeps the head of what it gets, and says at the end how much it left out.
type capped struct {
	to   io.WriteCloser
	left int64
	lost int64
	cut  func(lost int64)
}

func (c *capped) Write(b []byte) (int, error) {
	n := min(int64(len(b)), c.left)
	c.left -= n
	c.lost += int64(len(b)) - n
	if n > 0 {
		if n, err := c.to.Write(b[:n]); err != nil {
			return n, err
		}
	}
	return len(b), nil
}

func (c *capped) Close() error {
	if c.lost > 0 {
		c.cut(c.lost)
		if _, err := fmt.Fprintf(c.to, "\n[ralph: %d more bytes were not kept]\n", c.lost); err != nil {
			return errors.Join(err, c.to.Close())
		}
	}
	return c.to.Close()
}
