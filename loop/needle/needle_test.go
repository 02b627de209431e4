package needle_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/loop/needle"
)

// A text is found wherever the pieces are split, and only then.
func FuzzFeed(f *testing.F) {
	f.Add("aab", "aaab", uint8(2))
	f.Add("abab", "abaabab", uint8(3))
	f.Fuzz(func(t *testing.T, text, stream string, size uint8) {
		if text == "" {
			return
		}
		n, found := needle.New(text), false
		for rest := stream; rest != "" && !found; {
			piece := rest[:min(len(rest), 1+int(size))]
			rest = rest[len(piece):]
			found = n.Feed(piece)
		}
		if want := strings.Contains(stream, text); found != want {
			t.Errorf("%q in %q: %v, want %v", text, stream, found, want)
		}
		if n.Reset(); found && !n.Feed(text) {
			t.Errorf("%q is not found again", n)
		}
	})
}
