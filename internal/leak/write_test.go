package leak

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// pieces writes the text in pieces of the given size.
func pieces(t *testing.T, text string, size int, writer func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var to bytes.Buffer
	w := writer(&to)
	for piece := range slices.Chunk([]byte(text), size) {
		if n, err := w.Write(piece); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.String()
}

// FuzzRedact: however a text is split, the stream matches the result of Replace, and never contains the secret.
func FuzzRedact(f *testing.F) {
	f.Add("say hunter22 twice: hunter22", "hunter22", 5)
	f.Add("aaaaaaaaab", "aaaaaaaab", 1)
	f.Add("hunter22plus and hunter22", "hunter22", 3)
	f.Add("", "hunter22", 3)
	f.Fuzz(func(t *testing.T, text, secret string, size int) {
		secret = strings.TrimSpace(secret)
		if len(text)+len(secret) > 4<<10 || strings.Contains(secret, "\xff") {
			return // longer texts add nothing; no real value contains 0xff
		}
		finder := Known([]string{secret, "hunter22plus"})
		want := string(finder.Replace([]byte(text), "[secret]"))
		if len(secret) >= Shortest {
			for piece := range strings.SplitSeq(want, "[secret]") {
				if strings.Contains(piece, secret) {
					t.Errorf("%q shows %q", want, secret)
				}
			}
		}
		redact := func(to io.Writer) io.WriteCloser { return finder.Redact(to, "[secret]") }
		if got := pieces(t, text, max(1, size%16), redact); got != want {
			t.Errorf("in pieces of %d it is %q, at once %q", size%16, got, want)
		}
	})
}

func TestReplace(t *testing.T) {
	t.Parallel()
	finder := New([]string{"s3cret\"value", "hunter22", "hunter22plus", "short"})
	for text, want := range map[string]string{
		"a s3cret\"value b":                            "a [secret] b",
		`{"t":"s3cret\"value"}`:                        `{"t":"[secret]"}`,
		"q=s3cret%22value&":                            "q=[secret]&",
		"czNjcmV0InZhbHVl.":                            "[secret].",
		"hunter22hunter22":                             "[secret][secret]",
		"hunter22plus, hunter22":                       "[secret], [secret]",
		"hunter2 short":                                "hunter2 short",
		`["hunter","22plus"]`:                          `["hunter","22plus"]`,
		token + hex.EncodeToString([]byte("hunter22")): token + "[secret]",
	} {
		if got := string(finder.Replace([]byte(text), "[secret]")); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if same := []byte("nothing here"); &finder.Replace(same, "")[0] != &same[0] {
		t.Error("text without a value is copied")
	}
}

// In a log, a value is also replaced if other characters split it, but a line of JSON stays JSON.
func TestReplaceInLog(t *testing.T) {
	t.Parallel()
	finder := New([]string{"xK9vQ2mZ7p", "hunter22"})
	for text, want := range map[string]string{
		"x K 9 v Q 2 m Z 7 p":                      "[secret]",
		"it is x-K-9-v-Q\n  2-m-Z-7-p, hunter22\n": "it is [secret], [secret]\n",
		`"xK9v" + "Q2mZ7p"`:                        `"[secret]"`,
		`{"t":"say x K 9 v Q 2 m Z 7 p \" x,K,9,v,Q,2,m,Z,7,p","u":"hun\u0020ter22"}`: `{"t":"say [secret] \" [secret]","u":"[secret]"}`,
		`{"t":"x K 9 v Q\n2 m Z 7 p"}`:        `{"t":"[secret]"}`,
		` ["xK9v","Q2mZ7p", "hunter22"]`:      ` ["xK9v","Q2mZ7p", "[secret]"]`,
		"{\"t\":\"xK9v\"}\n{\"Q2mZ7p\":0}\n":  "{\"t\":\"xK9v\"}\n{\"Q2mZ7p\":0}\n",
		`{"t":"\\"} hun ter22`:                `{"t":"\\"} hun ter22`,
		"[12:03] hun ter22\n[INFO] hun-ter22": "[12:03] [secret]\n[INFO] [secret]",
		"hun\n\nter22 hunter2":                "hun\n\nter22 hunter2",
	} {
		if got := string(finder.ReplaceInLog([]byte(text), "[secret]")); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if same := []byte("nothing here"); &finder.ReplaceInLog(same, "")[0] != &same[0] {
		t.Error("text without a value is copied")
	}
}

// FuzzReplaceInLog: a line of JSON stays JSON.
func FuzzReplaceInLog(f *testing.F) {
	f.Add("x K\n9 v\tQ2mZ7p", "xK9v", "Q2mZ7p")
	f.Add("\bhun ter22", `hun\`, `"ter22`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		line, err := json.Marshal(map[string]any{a: []any{b, c, true, 22, map[string]string{c: a}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := New([]string{"xK9vQ2mZ7p", "hunter22"}).ReplaceInLog(line, "[secret]"); !json.Valid(got) {
			t.Errorf("%s becomes %s", line, got)
		}
	})
}

// stars counts masked bytes, and checks that all other bytes are unchanged.
func stars(t *testing.T, name, before, after string) (n int) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%s: %d bytes have become %d", name, len(before), len(after))
	}
	for i := range len(before) {
		switch {
		case before[i] == after[i]:
		case after[i] == '*':
			n++
		default:
			t.Fatalf("%s: %q has become %q", name, before, after)
		}
	}
	return n
}

// A value is masked in every encoding, wherever the stream is split.
func TestMask(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`k9-Zq/"7+x%41_vW\3fTyaB`, "sk-ant-api03-AbCdEfGh", "aaaaaaaaab", strings.Repeat("long-token.", 20)} {
		finder := Known([]string{value})
		for name, coded := range hidden(value) {
			if name == "od -tx1" || name == "xxd" || name == "hexdump -C" || strings.Contains(value, `\`) && strings.Contains(name, "percent in part") {
				continue // no service answers in this encoding
			}
			text := `{"error":"bad key ` + coded + ` here"}` + "\n\n"
			for _, size := range []int{1, 3, 64, len(text)} {
				// Digits at the ends of an encoding also encode neighboring bytes, and stay; so do words around the value.
				if n := stars(t, name, text, pieces(t, text, size, finder.Mask)); n < len(value)*6/10 {
					t.Errorf("%s of %.30q in pieces of %d: %d of %d bytes are masked", name, value, size, n, len(coded))
				}
			}
		}
	}
}

// Other text passes at once and unchanged.
func TestMaskDoesNotDelay(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	m := Known([]string{"sk-ant-api03-AbCdEfGh"}).Mask(&to)
	for _, event := range []string{
		"data: {\"text\":\"one\"}\n\n", "data: sk-ant\n\n", "data: c2st\r\n\r\n", "data: 73 6b\n\n", "data: 100%!\n\n", `data: \u00x` + "\n\n", "ONVS2\n\n", "0\n\n",
		"{\"done\":true}\n",
	} {
		to.Reset()
		if _, err := io.WriteString(m, event); err != nil || to.String() != event {
			t.Errorf("of %q came %q, %v", event, to.String(), err)
		}
	}
	for _, long := range []string{"%25252525", `\\\\\\\\`, "c2st                ", "s\x00\x00\x00\x00", "7 ", "sk-ant-api03", "0x"} {
		long = strings.Repeat(long, 1000)
		to.Reset()
		if _, err := io.WriteString(m, long); err != nil || to.Len() < len(long)-200 {
			t.Errorf("%.10q: %d of %d bytes are held back, %v", long, len(long)-to.Len(), len(long), err)
		}
		if _, err := io.WriteString(m, "!\n\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// Any text keeps its length and everything but the value; the output never contains the value.
func FuzzMask(f *testing.F) {
	const value = `k9-Zq/"7+x%41_vW\3fTyaB`
	for _, coded := range hidden(value) {
		f.Add([]byte(coded), []byte(value), []byte(coded), uint8(3))
	}
	f.Add([]byte("aaab"), []byte("aaaaaaaab"), []byte("%61aaa"), uint8(1))
	f.Add([]byte("\n\n       \n"), []byte("a\n\n\n\n\n\n\nb"), []byte("%4"), uint8(3))
	f.Fuzz(func(t *testing.T, before, value, after []byte, size uint8) {
		value = bytes.TrimSpace(value)
		if len(value) < Shortest || bytes.ContainsAny(value, "*\xff") || len(value) > 1<<10 {
			return
		}
		finder := Known([]string{string(value)})
		text := string(before) + string(value) + string(after)
		masked := pieces(t, text, len(text), finder.Mask)
		stars(t, "fuzz", text, masked)
		if strings.Contains(masked, string(value)) {
			t.Fatalf("%q passes", masked)
		}
		if pieces(t, text, int(size)+1, finder.Mask) != masked {
			t.Fatal("pieces make a difference")
		}
	})
}

func BenchmarkReplaceInLog(b *testing.B) {
	for name, text := range diffs(10 << 20) {
		b.Run(name, func(b *testing.B) {
			f := Known([]string{"sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"})
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.ReplaceInLog(text, "[secret]")
			}
		})
	}
}

func BenchmarkMask(b *testing.B) {
	text := bytes.Repeat([]byte(`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Some words of a model, \"quoted\""}}`+"\n\n"), 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m := Known([]string{"sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"}).Mask(io.Discard)
		_, _ = m.Write(text)
		_ = m.Close()
	}
}
