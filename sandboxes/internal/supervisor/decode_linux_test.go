package supervisor

import (
	"strings"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

func FuzzDecodeEvent(f *testing.F) {
	for _, seed := range []string{
		"", "p", "{}", `{"id":1,"kind":"exited","code":3}`, `{"id":1,"kind":"refused","cause":"not-found","error":"x"}`,
		`{"id":-1}`, `{"id":1e99}`, `[]`, strings.Repeat("[", 20000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		e, err := decodeEvent(packet)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		if len(e.Error) > maxEvent {
			t.Errorf("%d bytes of error are kept", len(e.Error))
		}
		_ = sandboxes.ExitOf(e.Code, syscall.Signal(e.Signal))
	})
}

func FuzzKilobytes(f *testing.F) {
	f.Add([]byte("Name:\tx\nRssAnon:\t     132 kB\nVmSwap:\t       0 kB\n"))
	f.Add([]byte("RssAnon:\t9223372036854775807 kB\nVmSwap: x\nRssAnon:\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n := kilobytes(text, "RssAnon", "VmSwap"); n < 0 {
			t.Errorf("%d bytes", n)
		}
	})
}
