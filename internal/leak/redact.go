package leak

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// SecretName reports whether a variable's name says that its value is secret.
func SecretName(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "APIKEY"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return slices.Contains(strings.Split(name, "_"), "KEY")
}

// Redact returns a writer that does to a stream what Replace does to a text, however the stream is cut into pieces. It
// holds back the last bytes, as many as the longest value has, until more bytes come or it is closed. Closing it leaves
// to open.
func (f *Finder) Redact(to io.Writer, by string) io.WriteCloser {
	r := &redactor{finder: f, to: to, by: by}
	for _, list := range f.lists {
		for _, n := range list {
			if n.shape == nil {
				r.longest = max(r.longest, len(n.text))
			}
		}
	}
	return r
}

type redactor struct {
	finder  *Finder
	to      io.Writer
	by      string
	longest int
	held    []byte
}

func (r *redactor) Write(p []byte) (int, error) { return len(p), r.write(p, r.longest) }

// Close writes the bytes that were held back.
func (r *redactor) Close() error { return r.write(nil, 0) }

// write passes on what stands before the last bytes: a value may begin in those and end in the next piece.
func (r *redactor) write(p []byte, hold int) error {
	text := append(r.held, p...)
	from, at := 0, 0 // the text before from was written
	for at < len(text) && len(text)-at >= hold {
		n := 0
		if len(text)-at > 1 && r.finder.first[pair(text[at], text[at+1])] != 0 {
			n = r.finder.longest(text[at:])
		}
		if n == 0 {
			at++
			continue
		}
		if _, err := r.to.Write(append(text[from:at:at], r.by...)); err != nil {
			return err
		}
		at += n
		from = at
	}
	_, err := r.to.Write(text[from:at])
	r.held = bytes.Clone(text[at:])
	return err
}
