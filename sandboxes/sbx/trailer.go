package sbx

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// maxTrailer is more than the last word can have after its beginning.
const maxTrailer = 40

// last is the last word of the shell inside: how the command ended, or why it did not start.
type last struct {
	refused string // why it was not started; empty: it ran
	code    int
}

// trailer passes output on and keeps back the last word, which stands at its end. The word begins with a NUL and the
// command's own random name, so that output cannot be taken for it by chance.
type trailer struct {
	to    io.Writer // may be nil
	begin []byte
	held  []byte
	deaf  bool
}

func newTrailer(to io.Writer, id string) *trailer {
	return &trailer{to: to, begin: []byte("\x00ralph-" + id + " ")}
}

// Write never fails: a writer's error stops the copying, not the command.
func (t *trailer) Write(p []byte) (int, error) {
	t.held = append(t.held, p...)
	keep := 0
	tail := t.held[max(0, len(t.held)-len(t.begin)-maxTrailer):] // what begins before it is no last word
	if i := bytes.LastIndex(tail, t.begin); i >= 0 {
		keep = len(tail) - i
	} else {
		keep = begun(t.held, t.begin)
	}
	t.pass(len(t.held) - keep)
	return len(p), nil
}

// begun is how many bytes at the end of text may be the beginning of the word.
func begun(text, word []byte) int {
	for n := min(len(text), len(word)-1); n > 0; n-- {
		if bytes.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}

// pass passes on the first n bytes.
func (t *trailer) pass(n int) {
	if t.to != nil && !t.deaf && n > 0 {
		if _, err := t.to.Write(t.held[:n]); err != nil {
			t.deaf = true
		}
	}
	t.held = append(t.held[:0], t.held[n:]...)
}

// end is called when no more comes. Without a last word everything was output.
func (t *trailer) end() (last, bool) {
	if word, ok := bytes.CutPrefix(t.held, t.begin); ok {
		if l, ok := readLast(string(word)); ok {
			return l, true
		}
	}
	t.pass(len(t.held))
	return last{}, false
}

func readLast(word string) (last, bool) {
	kind, value, ok := strings.Cut(strings.TrimSuffix(word, "\n"), " ")
	if !ok || !strings.HasSuffix(word, "\n") {
		return last{}, false
	}
	switch kind {
	case "exit":
		code, err := strconv.ParseUint(value, 10, 8)
		return last{code: int(code)}, err == nil
	case "refused":
		return last{refused: value}, value != ""
	}
	return last{}, false
}
