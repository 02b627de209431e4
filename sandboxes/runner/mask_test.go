package runner

import (
	"bytes"
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	t.Parallel()
	m := newMask([]string{
		"API_TOKEN=s3cret\"value", "db_password=hunter22", "MONKEY=bananas", "PATH=/usr/bin", "X_KEY=short", "NAMED=by-name", "LONG_KEY=hunter22plus",
	}, []string{"NAMED"})
	for text, want := range map[string]string{
		"a s3cret\"value b":      "a [secret] b",
		`{"t":"s3cret\"value"}`:  `{"t":"[secret]"}`,
		"q=s3cret%22value&":      "q=[secret]&",
		"czNjcmV0InZhbHVl.":      "[secret].",
		"73336372657422 is not":  "73336372657422 is not",
		"hunter22hunter22":       "[secret][secret]",
		"hunter22plus, hunter22": "[secret], [secret]",
		"hunter2":                "hunter2",
		"bananas /usr/bin short": "bananas /usr/bin short",
		"by-by-name":             "by-[secret]",
	} {
		if got := m.text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// However a text comes in pieces, the same is shown of it, and never the secret.
func FuzzMask(f *testing.F) {
	f.Add("say hunter22 twice: hunter22", "hunter22", 5)
	f.Add("aaaaaaab", "aaaaaab", 1)
	f.Fuzz(func(t *testing.T, text, secret string, size int) {
		if len(text)+len(secret) > 4<<10 {
			return // more of the same
		}
		m := newMask([]string{"A_TOKEN=" + secret}, nil)
		want := m.text(text)
		if len(secret) >= shortest {
			for piece := range strings.SplitSeq(want, masked) {
				if strings.Contains(piece, secret) {
					t.Errorf("%q shows %q", want, secret)
				}
			}
		}
		var out bytes.Buffer
		w := masking{mask: m, to: &out}
		size = max(1, size%16)
		for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
			_, _ = w.Write(b[:min(size, len(b))])
		}
		_ = w.Close()
		if out.String() != want {
			t.Errorf("in pieces of %d it is %q, at once %q", size, &out, want)
		}
	})
}
