package proc

import "bytes"

// The longest line, in bytes, that a [Lines] keeps whole: of a program that nobody trusts, and of git's data.
const (
	MaxLine      = 16 << 20
	maxExactLine = 64 << 20
)

// keptBuffer is what a Lines keeps for the next line; a larger buffer, from one huge line, is given back.
const keptBuffer = 64 << 10

// Lines is a writer that splits bytes into lines before anybody decodes them, so that no rune is cut where two writes
// meet. A line longer than its limit is cut there and counted; it is never an error. Lines never fails, holds one line
// at most, and belongs to one goroutine at a time.
type Lines struct {
	line func([]byte)
	max  int
	// exact: a "\r" before the line's end belongs to the line.
	exact bool
	buf   []byte // the line so far, when it spans writes
	over  bool   // the rest of this line is dropped
	cut   int
}

// NewLines returns a Lines that calls line with each line, without its end ("\n" or "\r\n"). The slice is only valid
// during the call. The limit is MaxLine.
func NewLines(line func([]byte)) *Lines { return &Lines{line: line, max: MaxLine} }

// NewExactLines returns a Lines that ends lines at "\n" only: for data, in which a "\r" is a byte like any other.
func NewExactLines(line func([]byte)) *Lines {
	return &Lines{line: line, max: maxExactLine, exact: true}
}

// Write takes all of p and calls the function for each line that ends in it.
func (l *Lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			l.keep(p)
			return n, nil
		}
		if len(l.buf) == 0 && !l.over && i <= l.max {
			l.line(l.trim(p[:i]))
		} else {
			l.keep(p[:i])
			l.emit(!l.over)
		}
		p = p[i+1:]
	}
}

// Close hands on a last line that has no end. Lines may be used again after it.
func (l *Lines) Close() error {
	if len(l.buf) > 0 || l.over {
		l.emit(false)
	}
	return nil
}

// Cut is how many lines were longer than the limit.
func (l *Lines) Cut() int { return l.cut }

// keep adds to the line so far, up to the limit.
func (l *Lines) keep(p []byte) {
	if l.over || len(p) == 0 {
		return
	}
	if room := l.max - len(l.buf); len(p) > room {
		p, l.over = p[:room], true
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

// emit hands on the line so far. trim drops the "\r" of a "\r\n".
func (l *Lines) emit(trim bool) {
	line := l.buf
	if trim {
		line = l.trim(line)
	}
	l.line(line)
	l.over = false
	if cap(l.buf) > keptBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
}

// trim takes the "\r" of a "\r\n" away.
func (l *Lines) trim(line []byte) []byte {
	if l.exact {
		return line
	}
	return bytes.TrimSuffix(line, []byte{'\r'})
}
