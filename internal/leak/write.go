package leak

import (
	"bytes"
	"io"
	"strings"
)

// Replace replaces every value given to New in the text, in all encodings. It searches neither for credentials nor for
// values with other characters between their letters: the text may be JSON.
func (f *Finder) Replace(text []byte, by string) []byte {
	spans, _ := f.findExact(text, true)
	if len(spans) == 0 {
		return text
	}
	var out bytes.Buffer
	w := &writer{out: &out, find: f.findExact, replacement: func(int) string { return by }}
	_ = w.pass(text, true) // a Buffer never fails
	return out.Bytes()
}

// Redact returns a writer that replaces values in a stream as Replace does in a text, however the stream is split. It holds
// back only a possible start of a value, until more data arrives or it is closed. Close does not close to.
func (f *Finder) Redact(to io.Writer, by string) io.WriteCloser {
	return &writer{out: to, find: f.findExact, replacement: func(int) string { return by }}
}

// Mask returns a writer that replaces each value that In finds by as many stars as the value has bytes. It holds back what
// Redact does, but nothing across an empty line, so that a stream of events is not delayed.
func (f *Finder) Mask(to io.Writer) io.WriteCloser {
	return &writer{out: to, find: f.find, replacement: func(n int) string { return strings.Repeat("*", n) }}
}

type writer struct {
	out         io.Writer
	find        func(text []byte, last bool) (spans []span, open int)
	replacement func(size int) string
	pending     []byte
}

func (w *writer) Write(p []byte) (int, error) { return len(p), w.pass(append(w.pending, p...), false) }

// Close writes the held bytes.
func (w *writer) Close() error { return w.pass(w.pending, true) }

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
		out = append(append(out, text[done:s.from]...), w.replacement(s.to-s.from)...)
		done = s.to
	}
	if done < open {
		out = append(out, text[done:open]...)
		done = open
	}
	w.pending = bytes.Clone(text[done:])
	if len(out) == 0 {
		return nil
	}
	_, err := w.out.Write(out)
	return err
}
