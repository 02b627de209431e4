package redact

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

const value = "a-value-to-be-kept"

type closing struct{ bytes.Buffer }

func (*closing) Close() error { return nil }

// A value is replaced at any position in the stream, with writes of any size, also on lines too long to be buffered.
func TestStreamsAreRedacted(t *testing.T) {
	t.Parallel()
	text := "first " + value + "\nno end " + strings.Repeat("x", longLine) + value + strings.Repeat("y", 3*longLine) + value + "\nlast " + value
	want := strings.ReplaceAll(text, value, Value)
	for _, size := range []int{1, 7, 4096, len(text)} {
		var to closing
		w := New(value).Stream(&to, nil)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if to.String() != want {
			t.Errorf("in pieces of %d bytes: %d bytes, want %d", size, to.Len(), len(want))
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	var to closing
	var lost int64
	c := &capped{to: &to, left: 10, cut: func(n int64) { lost = n }}
	for range 3 {
		if n, err := c.Write([]byte("12345678")); n != 8 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := c.Close(); err != nil || to.String() != "1234567812\n[ralph: 14 more bytes were not kept]\n" || lost != 14 {
		t.Errorf("%q, %d lost, %v", to.String(), lost, err)
	}
}

func TestTextsAndLogs(t *testing.T) {
	t.Parallel()
	s := New(value)
	for text, want := range map[string]string{
		"": "", "fine": "fine", "it is " + value: Text, "AKIA" + "ABCDEFGHIJKLMNOP": Text,
	} {
		if got := s.Clean(text); got != want || s.In(text) != (want == Text) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for _, logged := range []string{value, strings.Join(strings.Split(value, ""), " ")} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(s.Log(&log), nil)).Warn("m", "x", logged)
		if got := log.String(); !strings.Contains(got, `"x":"[redacted]"`) {
			t.Errorf("log %s", got)
		}
		var to closing
		w := s.Stream(&to, nil)
		if _, err := io.WriteString(w, `{"text":"it is `+logged+`"}`+"\n"); err != nil || w.Close() != nil || to.String() != `{"text":"it is [redacted]"}`+"\n" {
			t.Errorf("stream %s, %v", to.String(), err)
		}
	}
}

// A value split by invisible characters is one value for the reader.
func TestSplitValues(t *testing.T) {
	t.Parallel()
	s, head, tail := New(value), value[:5], value[5:]
	for _, split := range []string{
		"\u200b", "\u200d", "\x00", "\x07", "\x1b", "\x7f", "\r", "\u0085", "\ufeff", "\u00ad", "\u034f", "\u2028", "\ufe0f", "\ufffd", "\xff", "\U000e0041", "\u202e",
	} {
		text := "it is " + head + split + tail + " \u200dhere"
		if !s.In(text) || s.Clean(text) != Text {
			t.Errorf("%q is not redacted", text)
		}
		if got := s.Mask(text); got != "it is "+Value+" here" {
			t.Errorf("%q: %q", text, got)
		}
	}
	if text := head + "\n" + tail; s.Mask(text) != text {
		t.Errorf("%q is redacted", text)
	}
	if text := "caf\u00e9 \u200d\x1b[31m"; s.In(text) || s.Mask(text) != text {
		t.Errorf("%q is redacted", text)
	}
}

func TestSecretsGrow(t *testing.T) {
	t.Parallel()
	s := New("the-first-value", "short", " ")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 10 {
				v := fmt.Sprintf("value-%d-%d-of-many", i, n)
				s.Add(v, "the-last-value")
				if !s.In("x " + v) {
					t.Errorf("%s is not found", v)
				}
			}
		})
	}
	wg.Wait()
	if len(s.values) != 82 || !s.In("the-first-value") || s.In("short") {
		t.Errorf("%d values", len(s.values))
	}
}

// A service obtains new tokens as long as it runs. They do not displace the initial values.
func TestTokensTakeNothingFromOtherValues(t *testing.T) {
	t.Parallel()
	s := New("the-first-value")
	for n := range maxShortLived + 1 {
		s.AddShortLived(fmt.Sprintf("token-%d-of-many", n), "the-first-value")
	}
	if len(s.shortLived) != maxShortLived || !s.In("the-first-value") || s.In("token-0-of-many") || !s.In("token-1-of-many") {
		t.Errorf("%d tokens", len(s.shortLived))
	}
}

// A value that is still in use, such as a long-lived login, does not count as the oldest.
func TestTokensInUseAreKept(t *testing.T) {
	t.Parallel()
	s := New()
	for n := range maxShortLived {
		s.AddShortLived("the-login-that-lasts", fmt.Sprintf("token-%d-of-many", n))
	}
	if len(s.shortLived) != maxShortLived || !s.In("the-login-that-lasts") {
		t.Errorf("%d tokens", len(s.shortLived))
	}
}
