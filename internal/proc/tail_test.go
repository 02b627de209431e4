package proc

import (
	"strings"
	"sync"
	"testing"
)

func TestTail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		size   int
		pieces []string
		want   string
	}{
		{"nothing", 4, nil, ""},
		{"less", 4, []string{"ab"}, "ab"},
		{"full", 4, []string{"ab", "cd"}, "abcd"},
		{"over by one", 4, []string{"abcd", "e"}, "bcde"},
		{"round and round", 4, []string{"abc", "def", "ghi", "j"}, "ghij"},
		{"one long", 4, []string{"ab", "0123456789"}, "6789"},
		{"after a long one", 4, []string{"0123456789", "ab"}, "89ab"},
		{"no room", 0, []string{"abc"}, ""},
		{"a rune is cut", 4, []string{"€€"}, "€"},
		{"the first byte is no rune, and nothing is cut", 4, []string{"\x80a"}, "\x80a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tail, total := NewTail(tt.size), 0
			for _, p := range tt.pieces {
				if n, err := tail.Write([]byte(p)); n != len(p) || err != nil {
					t.Errorf("Write of %d bytes: %d, %v", len(p), n, err)
				}
				total += len(p)
			}
			if got := tail.String(); got != tt.want {
				t.Errorf("tail is %q, want %q", got, tt.want)
			}
			if tail.Total() != int64(total) {
				t.Errorf("total is %d, want %d", tail.Total(), total)
			}
		})
	}
}

func TestTailFromSeveralGoroutines(t *testing.T) {
	t.Parallel()
	tail := NewTail(100)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				_, _ = tail.Write([]byte("0123456789"))
				_ = tail.String()
			}
		})
	}
	writers.Wait()
	if got := tail.String(); got != strings.Repeat("0123456789", 10) {
		t.Errorf("tail is %q", got)
	}
}

func FuzzTail(f *testing.F) {
	f.Add("hello", " ", "world", 7)
	f.Add("", "€", "0123456789", 3)
	f.Fuzz(func(t *testing.T, a, b, c string, size int) {
		size = min(max(size, 0), 64)
		tail := NewTail(size)
		for _, p := range []string{a, b, c} {
			_, _ = tail.Write([]byte(p))
		}
		all := a + b + c
		if got, want := string(tail.Bytes()), all[max(len(all)-size, 0):]; got != want {
			t.Errorf("tail of %q is %q, want %q", all, got, want)
		}
	})
}
