package leak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

func random(n int) []byte {
	out := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// fill repeats the text up to the size of a large diff.
func fill(text string, size int) []byte {
	return bytes.Repeat([]byte(text), size/len(text)+1)[:size]
}

// diffs returns large diffs: ordinary ones, and ones made to slow ralph down.
func diffs(size int) map[string][]byte {
	b64 := base64.StdEncoding
	code := "func (w *worker) request(ctx context.Context, s *session) error {\n\tif err := w.push(ctx, s); err != nil {\n\t\treturn err // see https://example.com/a%20b\n\t}\n}\n"
	lock := `    "node_modules/left-pad": { "version": "1.3.0", "resolved": "https://registry.example.com/left-pad/-/left-pad-1.3.0.tgz", "integrity": "sha512-` +
		b64.EncodeToString(random(64)) + `" },` + "\n"
	thrice := random(size / 2)
	for range 3 {
		thrice = []byte(b64.EncodeToString(thrice))
	}
	return map[string][]byte{
		"code":            fill(code, size),
		"lock file":       fill(lock, size),
		"minified":        fill(`function a(b,c){var d=e[b];return d?d(c):f.g("h\x20i",{j:!0,k:void 0})},l=m||{},n.prototype.o=function(){return this.p.q};`, size),
		"image, base64":   []byte("src='data:image/png;base64," + b64.EncodeToString(random(size*3/4)) + "'"),
		"binary":          random(size),
		"hex":             []byte(hex.EncodeToString(random(size / 2))),
		"hostile base64":  thrice[:size],
		"hostile leads":   fill("sk-ant-sk-ant-sk-ant- ", size),
		"hostile keys":    fill("-----BEGIN "+strings.Repeat("A ", 240), size),
		"hostile escapes": fill(`%25%32%35`, size),
		"hostile breaks":  fill("a\n                                        ", size),
		"dictionary":      fill("abacus\nabandon\nzebra\nzigzag\n", size),
	}
}

func BenchmarkScan(b *testing.B) {
	f := New([]string{"a-token-of-some-kind-0123456789", "another-token-9876543210"})
	for name, text := range diffs(10 << 20) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := f.Scan(func(string) { b.Error("found") })
				for line := range bytes.SplitSeq(text, []byte("\n")) {
					s.Line("file", line)
				}
				s.End()
			}
		})
	}
}
