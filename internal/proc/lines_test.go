package proc

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// split writes text in pieces and returns the lines.
func split(l *Lines, got *[]string, pieces ...string) []string {
	l.line = func(line []byte) { *got = append(*got, string(line)) }
	for _, p := range pieces {
		if n, err := l.Write([]byte(p)); n != len(p) || err != nil {
			panic("Write took part of a piece")
		}
	}
	_ = l.Close()
	return *got
}

func TestLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		pieces []string
		want   []string
		cut    int
	}{
		{"nothing", nil, nil, 0},
		{"one", []string{"a\n"}, []string{"a"}, 0},
		{"no end", []string{"a\nb"}, []string{"a", "b"}, 0},
		{"empty lines", []string{"\n\n"}, []string{"", ""}, 0},
		{"empty writes", []string{"", "a", "", "\n", ""}, []string{"a"}, 0},
		{"windows", []string{"a\r\nb\r\n"}, []string{"a", "b"}, 0},
		{"end split", []string{"a\r", "\nb"}, []string{"a", "b"}, 0},
		{"carriage returns inside stay", []string{"a\rb\r\r\n"}, []string{"a\rb\r"}, 0},
		{"rune split", []string{"\xe2\x82", "\xac\n"}, []string{"€"}, 0},
		{"at the limit", []string{"12345678\n", "1234", "5678\n"}, []string{"12345678", "12345678"}, 0},
		{"over the limit", []string{"123456789\nx\n"}, []string{"12345678", "x"}, 1},
		{"over in pieces", []string{"1234", "56789", "abc", "\nx\n"}, []string{"12345678", "x"}, 1},
		{"over without end", []string{"123456789"}, []string{"12345678"}, 1},
		{"twice over", []string{"123456789\n123456789\n"}, []string{"12345678", "12345678"}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := &Lines{max: 8}
			var got []string
			if split(l, &got, tt.pieces...); !slices.Equal(got, tt.want) {
				t.Errorf("lines are %q, want %q", got, tt.want)
			}
			if l.Cut() != tt.cut {
				t.Errorf("%d lines are cut, want %d", l.Cut(), tt.cut)
			}
		})
	}
}

func TestExactLines(t *testing.T) {
	t.Parallel()
	var got []string
	want := []string{"a\r", "\r", "b\r\r", "c\r", "d\r"}
	if split(NewExactLines(nil), &got, "a\r\n\r\nb\r", "\r\n", "c\r", "\nd\r"); !slices.Equal(got, want) {
		t.Errorf("lines are %q, want %q", got, want)
	}
}

func TestLinesGivesAHugeBufferBack(t *testing.T) {
	t.Parallel()
	longest := 0
	l := NewLines(func(line []byte) { longest = max(longest, len(line)) })
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range maxLine/len(piece) + 2 {
		_, _ = l.Write(piece)
		if cap(l.buf) > maxLine {
			t.Fatalf("the buffer has %d bytes, more than a line may have", cap(l.buf))
		}
	}
	_, _ = l.Write([]byte("\nshort"))
	if longest != maxLine || l.Cut() != 1 {
		t.Errorf("the longest line has %d bytes, %d are cut", longest, l.Cut())
	}
	if cap(l.buf) > keptBuffer {
		t.Errorf("%d bytes are kept for the next line", cap(l.buf))
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a\r\nb\n\nc", 2, 4)
	f.Add("\r\n\r", 1, 1)
	f.Add("123456789\n", 3, 8)
	f.Fuzz(func(t *testing.T, text string, step, limit int) {
		step, limit = min(max(step, 1), 100), min(max(limit, 1), 1000)
		var pieces []string
		for rest := text; rest != ""; {
			n := min(step, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		var got []string
		split(&Lines{max: limit}, &got, pieces...)

		var want []string
		parts := strings.Split(text, "\n")
		for i, part := range parts {
			ended := i < len(parts)-1
			switch {
			case len(part) > limit:
				part = part[:limit]
			case ended:
				part = strings.TrimSuffix(part, "\r")
			}
			if ended || part != "" {
				want = append(want, part)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("lines of %q in steps of %d are %q, want %q", text, step, got, want)
		}
	})
}
