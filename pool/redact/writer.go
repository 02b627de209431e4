package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Log returns a writer for loggers that replaces secret values. Each Write must be a complete entry. It is as safe for
// concurrent use as w.
func (s *Secrets) Log(w io.Writer) io.Writer { return logWriter{s, w} }

type logWriter struct {
	secrets *Secrets
	to      io.Writer
}

func (l logWriter) Write(b []byte) (int, error) {
	if _, err := l.to.Write(l.secrets.Finder().ReplaceInLog(b, Value)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Stream returns a writer for a raw stream. It replaces values line by line and keeps at most StreamLimit bytes. Close
// calls cut with the number of dropped bytes, if there are any. It must be used by one goroutine only.
func (s *Secrets) Stream(to io.WriteCloser, cut func(lost int64)) io.WriteCloser {
	return &stream{secrets: s, to: &capped{to: to, left: StreamLimit, cut: cut}}
}

const (
	longLine = 64 << 10 // maximum number of buffered bytes of a line
	lineTail = 8 << 10  // bytes held back of a longer line, because a value may begin there
)

type stream struct {
	secrets *Secrets
	to      io.WriteCloser
	rest    []byte // an incomplete line
}

func (m *stream) Write(b []byte) (int, error) {
	m.rest = append(m.rest, b...)
	if bytes.IndexByte(b, '\n') < 0 && len(m.rest) <= longLine {
		return len(b), nil
	}
	m.rest = m.secrets.Finder().ReplaceInLog(m.rest, Value)
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
	_, err := m.to.Write(m.secrets.Finder().ReplaceInLog(m.rest, Value))
	return errors.Join(err, m.to.Close())
}

// StreamLimit is the number of bytes kept of one raw stream, so that an agent's output cannot fill the disk.
const StreamLimit = 64 << 20

// capped keeps the beginning of its input, and reports the number of dropped bytes when closed.
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
