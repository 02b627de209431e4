package pool

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ralph-pool/ralph/loop"
)

const (
	// withheld stands in a report where text would have carried a secret.
	withheld = "(withheld: it carries a secret)"
	// hidden stands in a log in place of a secret.
	hidden = "[hidden]"
)

// in reports whether the text carries one of them, or what looks like a well-known credential.
func (s *Secrets) in(text string) bool { return s.look().In(text) }

// clean returns the text, or what stands in its place.
func (s *Secrets) clean(text string) string {
	if s.in(text) {
		return withheld
	}
	return text
}

// verdict returns a copy of which nothing carries a secret.
func (s *Secrets) verdict(v Verdict) Verdict {
	v.Reason, v.Message, v.Question, v.Published = s.clean(v.Reason), s.clean(v.Message), s.clean(v.Question), s.clean(v.Published)
	v.Gate, v.Warnings = slices.Clone(v.Gate), slices.Clone(v.Warnings)
	for i := range v.Gate {
		v.Gate[i] = s.check(v.Gate[i])
	}
	for i := range v.Warnings {
		v.Warnings[i] = s.clean(v.Warnings[i])
	}
	return v
}

// check returns a copy of which nothing carries a secret.
func (s *Secrets) check(c loop.Check) loop.Check {
	c.Tail, c.Command = s.clean(c.Tail), s.clean(c.Command)
	return c
}

// event returns a copy of which nothing carries a secret.
func (s *Secrets) event(e Event) Event {
	e.Text, e.Title = s.clean(e.Text), s.clean(e.Title)
	if e.Check != nil {
		c := s.check(*e.Check)
		e.Check = &c
	}
	return e
}

// Log returns a writer that writes to w with the values replaced, for loggers: each Write is a whole entry. It is as
// safe for concurrent use as w.
func (s *Secrets) Log(w io.Writer) io.Writer { return logWriter{s, w} }

type logWriter struct {
	secrets *Secrets
	to      io.Writer
}

func (l logWriter) Write(b []byte) (int, error) {
	if _, err := l.to.Write(l.secrets.look().Replace(b, hidden)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// stream returns a writer for a raw stream, in which the values are replaced line by line. It belongs to one goroutine.
func (s *Secrets) stream(to io.WriteCloser) io.WriteCloser { return &masked{secrets: s, to: to} }

type masked struct {
	secrets *Secrets
	to      io.WriteCloser
	rest    []byte // a line that has not ended
}

const (
	maskedLine = 64 << 10 // bytes of a line that are held back at most
	maskedTail = 8 << 10  // what stays of them then, for a value that has only begun
)

func (m *masked) Write(b []byte) (int, error) {
	m.rest = append(m.rest, b...)
	if bytes.IndexByte(b, '\n') < 0 && len(m.rest) <= maskedLine {
		return len(b), nil
	}
	m.rest = m.secrets.look().Replace(m.rest, hidden)
	end := bytes.LastIndexByte(m.rest, '\n') + 1
	if len(m.rest)-end > maskedLine {
		end = len(m.rest) - maskedTail
	}
	if _, err := m.to.Write(m.rest[:end]); err != nil {
		return 0, err
	}
	m.rest = m.rest[:copy(m.rest, m.rest[end:])]
	return len(b), nil
}

func (m *masked) Close() error {
	_, err := m.to.Write(m.secrets.look().Replace(m.rest, hidden))
	return errors.Join(err, m.to.Close())
}
