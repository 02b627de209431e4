package proc

import "bytes"

// The maximum length of a line, in bytes, of a [Lines]: of output of untrusted programs, and of git's data.
const (
	maxLine      = 16 << 20
	maxExactLine = 64 << 20
)

// keptBuffer is the largest buffer, in bytes, that a Lines reuses for the next line; a larger one is released.
const keptBuffer = 64 << 10

// Lines is a writer that splits its input into lines before any decoding, so that a rune across two writes stays whole. It
// truncates a line at the limit and counts it. Lines never fails, buffers at most one line, and is used by one goroutine at
// a time.
type Lines struct {
	line func([]byte)
	max  int
	// exact: a "\r" before the "\n" is part of the line.
	exact     bool
	buf       []byte // start of a line that spans writes
	truncated bool   // the line is at the limit; its rest is dropped
	cut       int
}

// NewLines returns a Lines that calls line with each line, without its end ("\n" or "\r\n"). The slice is valid only during
// the call. The limit is maxLine.
func NewLines(line func([]byte)) *Lines { return &Lines{line: line, max: maxLine} }

// NewExactLines returns a Lines that splits at "\n" only, for data in which "\r" has no special meaning.
func NewExactLines(line func([]byte)) *Lines {
	return &Lines{line: line, max: maxExactLine, exact: true}
}

// Write consumes all of p and calls the function for each completed line.
func (l *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.keep(p)
			return n, nil
		}
		if len(l.buf) == 0 && !l.truncated && i <= l.max {
			l.line(l.trim(p[:i]))
		} else {
			l.keep(p[:i])
			l.emit(!l.truncated)
		}
		p = p[i+1:]
	}
}

// Close emits an unterminated last line. The Lines may be reused after it.
func (l *Lines) Close() error {
	if len(l.buf) > 0 || l.truncated {
		l.emit(false)
	}
	return nil
}

// Cut returns the number of truncated lines.
func (l *Lines) Cut() int { return l.cut }

// keep appends p to the current line, up to the limit.
func (l *Lines) keep(p []byte) {
	if l.truncated || len(p) == 0 {
		return
	}
	if room := l.max - len(l.buf); len(p) > room {
		p, l.truncated = p[:room], true
		l.cut++
	}
	if need := len(l.buf) + len(p); need > cap(l.buf) {
		// Doubling, as append does, but never past the limit.
		grown := make([]byte, len(l.buf), min(max(2*cap(l.buf), need, 4<<10), max(l.max, need)))
		copy(grown, l.buf)
		l.buf = grown
	}
	l.buf = append(l.buf, p...)
}

// emit passes the current line to the function. With trim, it removes a final "\r".
func (l *Lines) emit(trim bool) {
	line := l.buf
	if trim {
		line = l.trim(line)
	}
	l.line(line)
	l.truncated = false
	if cap(l.buf) > keptBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
}

// trim removes a final "\r", except from exact lines.
func (l *Lines) trim(line []byte) []byte {
	if l.exact {
		return line
	}
	return bytes.TrimSuffix(line, []byte{'\r'})
}
