package proc

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Tail is a writer that keeps the last size bytes, for error messages and reports. It never fails. It is safe for
// concurrent use.
type Tail struct {
	size int

	mu    sync.Mutex
	buf   []byte // guarded by mu; a ring once its length is size
	next  int    // guarded by mu; index of the ring's oldest byte
	total int64  // guarded by mu
}

// NewTail returns a Tail of size bytes.
func NewTail(size int) *Tail { return &Tail{size: max(size, 0)} }

// Write keeps the end of p, and always returns len(p).
func (t *Tail) Write(p []byte) (int, error) {
	n := len(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(n)
	if n >= t.size {
		t.buf = append(t.buf[:0], p[n-t.size:]...)
		t.next = 0
		return n, nil
	}
	if room := t.size - len(t.buf); room > 0 {
		head := p[:min(room, len(p))]
		t.buf = append(t.buf, head...)
		p = p[len(head):]
	}
	for len(p) > 0 {
		c := copy(t.buf[t.next:], p)
		p = p[c:]
		t.next = (t.next + c) % t.size
	}
	return n, nil
}

// Bytes returns a copy of the kept bytes, oldest first.
func (t *Tail) Bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]byte, 0, len(t.buf))
	out = append(out, t.buf[t.next:]...)
	return append(out, t.buf[:t.next]...)
}

// String returns the kept bytes as text. If bytes were dropped, it begins at the first whole rune.
func (t *Tail) String() string {
	b := t.Bytes()
	if int64(len(b)) < t.Total() {
		for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b = b[1:]
		}
	}
	return string(b)
}

// LastLines returns the last lines of a text as valid UTF-8, without the final line break.
func LastLines(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	return strings.ToValidUTF8(strings.Join(all[max(0, len(all)-lines):], "\n"), "\uFFFD")
}

// Total returns the number of bytes written in all.
func (t *Tail) Total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}
