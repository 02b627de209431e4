package sbx

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// maxTrailer is more than the maximum length of a trailer after its beginning, in bytes.
const maxTrailer = 40

// trailer is the last output of the shell inside: how the command ended, or why it did not start.
type trailer struct {
	refused string // why it was not started; empty: it was
	code    int
}

// trailerReader passes output on, except the trailer at its end. A trailer begins with a NUL and the command's random id,
// so that no other output matches by chance.
type trailerReader struct {
	to      io.Writer // may be nil
	begin   []byte
	pending []byte
	failed  bool
}

func newTrailerReader(to io.Writer, id string) *trailerReader {
	return &trailerReader{to: to, begin: []byte("\x00ralph-" + id + " ")}
}

// Write never fails: a writer's error stops the copying, not the command.
func (t *trailerReader) Write(p []byte) (int, error) {
	t.pending = append(t.pending, p...)
	keep := 0
	tail := t.pending[max(0, len(t.pending)-len(t.begin)-maxTrailer):] // no trailer is longer
	if i := bytes.LastIndex(tail, t.begin); i >= 0 {
		keep = len(tail) - i
	} else {
		keep = partialLength(t.pending, t.begin)
	}
	t.pass(len(t.pending) - keep)
	return len(p), nil
}

// partialLength returns how many bytes at the end of text may be the beginning of a trailer.
func partialLength(text, word []byte) int {
	for n := min(len(text), len(word)-1); n > 0; n-- {
		if bytes.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}

// pass passes on the first n bytes.
func (t *trailerReader) pass(n int) {
	if t.to != nil && !t.failed && n > 0 {
		if _, err := t.to.Write(t.pending[:n]); err != nil {
			t.failed = true
		}
	}
	t.pending = append(t.pending[:0], t.pending[n:]...)
}

// end ends the output and returns the trailer. Without one, it passes on everything held back.
func (t *trailerReader) end() (trailer, bool) {
	if word, ok := bytes.CutPrefix(t.pending, t.begin); ok {
		if l, ok := readTrailer(string(word)); ok {
			return l, true
		}
	}
	t.pass(len(t.pending))
	return trailer{}, false
}

func readTrailer(word string) (trailer, bool) {
	kind, value, ok := strings.Cut(strings.TrimSuffix(word, "\n"), " ")
	if !ok || !strings.HasSuffix(word, "\n") {
		return trailer{}, false
	}
	switch kind {
	case "exit":
		code, err := strconv.ParseUint(value, 10, 8)
		return trailer{code: int(code)}, err == nil
	case "refused":
		return trailer{refused: value}, value != ""
	}
	return trailer{}, false
}
