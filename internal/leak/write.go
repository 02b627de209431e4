package leak

import (
	"bytes"
	"io"
	"strings"
)

// Replace returns the text with every value of which New was told, in its usual forms, replaced. It does not look for
// credentials, nor for values between whose letters other signs stand: what is replaced may be JSON.
func (f *Finder) Replace(text []byte, by string) []byte {
	spans, _ := f.findExact(text, true)
	if len(spans) == 0 {
		return text
	}
	var out bytes.Buffer
	w := &writer{to: &out, find: f.findExact, by: func(int) string { return by }}
	_ = w.pass(text, true) // a Buffer fails never
	return out.Bytes()
}

// Redact returns a writer that does to a stream what Replace does to a text, however the stream is cut into pieces. It
// holds back only what may be a value's beginning, until more comes or it is closed. Closing it leaves to open.
func (f *Finder) Redact(to io.Writer, by string) io.WriteCloser {
	return &writer{to: to, find: f.findExact, by: func(int) string { return by }}
}

// Mask returns a writer that puts stars in place of each value that In finds, as many as it has bytes. It holds back what
// Redact does, and nothing over an empty line, so that a stream of events is not delayed.
func (f *Finder) Mask(to io.Writer) io.WriteCloser {
	return &writer{to: to, find: f.find, by: func(n int) string { return strings.Repeat("*", n) }}
}

type writer struct {
	to   io.Writer
	find func(text []byte, last bool) (spans []span, open int)
	by   func(size int) string
	held []byte
}

func (w *writer) Write(p []byte) (int, error) { return len(p), w.pass(append(w.held, p...), false) }

// Close writes the bytes that were held back.
func (w *writer) Close() error { return w.pass(w.held, true) }

func (w *writer) pass(text []byte, last bool) error {
	spans, open := w.find(text, last)
	if last {
		open = len(text)
	}
	var out []byte
	done := 0
	for _, s := range spans {
		if s.from >= open {
			break
		}
		out = append(append(out, text[done:s.from]...), w.by(s.to-s.from)...)
		done = s.to
	}
	if done < open {
		out = append(out, text[done:open]...)
		done = open
	}
	w.held = bytes.Clone(text[done:])
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}
