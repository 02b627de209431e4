package wire

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestPreface(t *testing.T) {
	t.Parallel()
	for _, p := range []Preface{{Verb: VerbPlan}, {Verb: VerbProxy}, {VerbEndpoint, "3"}, {VerbConnect, "example.com:443"}} {
		in := strings.NewReader(p.String() + "rest")
		got, err := ReadPreface(in)
		if err != nil || got != p {
			t.Errorf("%q: %+v, %v", p, got, err)
		}
		if rest, _ := io.ReadAll(in); string(rest) != "rest" {
			t.Errorf("%q: read on, to %q", p, rest)
		}
	}
	for _, s := range []string{
		"GET / HTTP/1.1\r\n", "ralph-egress/2 plan\n", "ralph-egress/1\n", "ralph-egress/1 plan \n", "ralph-egress/1 connect\n",
		"ralph-egress/1 connect \n", "ralph-egress/1 connect  \n", "ralph-egress/1 proxy now\n", strings.Repeat("x", 600) + "\n", "\n", "",
	} {
		if p, err := ReadPreface(strings.NewReader(s)); err == nil {
			t.Errorf("%q is taken for %+v", s, p)
		}
	}
}

func FuzzPreface(f *testing.F) {
	f.Add([]byte("ralph-egress/1 connect example.com:443\nrest"))
	f.Add([]byte("ralph-egress/1 plan\n"))
	f.Add([]byte("no not-allowed\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := ReadPreface(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, []byte(p.String())) {
			t.Errorf("%q is taken for %q", b, p)
		}
		_ = ReadReply(bytes.NewReader(b))
	})
}
