package leak

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// masked is not like any credential, and has what encodings change.
const masked = `k9-Zq/"7+x%41_vW\3fTy`

// reflections are the ways in which a service may send back what it got.
func reflections(v string) map[string]string {
	all := map[string]string{
		"raw":          v,
		"query":        url.QueryEscape(v),
		"every %":      percent(v),
		"% twice":      strings.ReplaceAll(percent(v), "%", "%25"),
		"JSON":         strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`).Replace(v),
		"\\u":          strings.ReplaceAll(percent(v), "%", `\u00`),
		"\\u in JSON":  strings.ReplaceAll(percent(v), "%", `\\u00`),
		"\\x":          strings.ReplaceAll(percent(v), "%", `\x`),
		"one escape":   fmt.Sprintf(`\u%04x`, v[0]) + strings.NewReplacer(`\`, `\\`).Replace(v[1:]),
		"hex":          hex.EncodeToString([]byte(v)),
		"HEX":          strings.ToUpper(hex.EncodeToString([]byte(v))),
		"spaced hex":   spaced(v, "%02x", " "),
		"colons":       spaced(v, "%02X", ":"),
		"Go's bytes":   spaced(v, "0x%02x", ", "),
		"UTF-16LE":     wide16(v, binary.LittleEndian),
		"UTF-16BE":     wide16(v, binary.BigEndian),
		"lower base32": strings.ToLower(base32.StdEncoding.EncodeToString([]byte(v))),
	}
	for shift := range 5 {
		text := strings.Repeat("x", shift) + v + strings.Repeat("y", (shift*2)%5)
		all[fmt.Sprint("base64 at ", shift)] = base64.StdEncoding.EncodeToString([]byte(text))
		all[fmt.Sprint("URL base64 at ", shift)] = base64.RawURLEncoding.EncodeToString([]byte(text))
		all[fmt.Sprint("lines of base64 at ", shift)] = wrap(base64.StdEncoding.EncodeToString([]byte(text)), 5, "\r\n  ")
		all[fmt.Sprint("base64 in JSON at ", shift)] = strings.ReplaceAll(wrap(base64.StdEncoding.EncodeToString([]byte(text)), 7, `\n`), "/", `\/`)
		all[fmt.Sprint("base32 at ", shift)] = base32.StdEncoding.EncodeToString([]byte(text))
	}
	reversed := []byte(v)
	slices.Reverse(reversed)
	all["reversed"] = string(reversed)
	return all
}

func spaced(v, format, by string) string {
	var all []string
	for i := range len(v) {
		all = append(all, fmt.Sprintf(format, v[i]))
	}
	return strings.Join(all, by)
}

func wide16(v string, order binary.AppendByteOrder) string {
	var all []byte
	for _, u := range utf16.Encode([]rune(v)) {
		all = order.AppendUint16(all, u)
	}
	return string(all)
}

// stars counts what was masked, and checks that nothing else has changed.
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

// A value is masked in every encoding, wherever the stream is cut.
func TestMask(t *testing.T) {
	t.Parallel()
	for _, value := range []string{masked, "sk-ant-api03-AbCdEfGh", "aaaaaaaaab", strings.Repeat("long-token.", 90)} {
		for name, coded := range reflections(value) {
			text := `{"error":"bad key ` + coded + ` here"}` + "\n\n"
			for _, size := range []int{1, 3, 64, len(text)} {
				var to bytes.Buffer
				m := Mask(&to, value)
				for piece := range slices.Chunk([]byte(text), size) {
					if _, err := m.Write(piece); err != nil {
						t.Fatal(err)
					}
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				// The digits at an encoding's ends belong to its neighbors, too, and stay.
				if n := stars(t, name, text, to.String()); n < len(coded)*6/10-4 {
					t.Errorf("%s of %.30q in pieces of %d: %d of %d bytes are masked", name, value, size, n, len(coded))
				}
			}
		}
	}
}

// What is no value goes on at once, and unchanged.
func TestMaskDoesNotDelay(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	m := Mask(&to, "sk-ant-api03-AbCdEfGh")
	for _, event := range []string{
		"data: {\"text\":\"one\"}\n\n", "data: sk-ant\n\n", "data: c2st\r\n\r\n", "data: 73 6b\n\n", "data: 100%!\n\n", `data: \u00x` + "\n\n", "ONVS2\n\n", "0\n\n",
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
	if got := MaskText("a short is short", "short"); got != "a short is short" {
		t.Errorf("%q", got)
	}
	if got := MaskText("sk-ant-api03-AbCdEfGh!", "sk-ant-api03-AbCdEfGh"); got != strings.Repeat("*", 21)+"!" {
		t.Errorf("%q", got)
	}
}

// Any text keeps its length and all but the value; the value is never in what comes out.
func FuzzMask(f *testing.F) {
	for _, coded := range reflections(masked) {
		f.Add([]byte(coded), []byte(masked), []byte(coded), uint8(3))
	}
	f.Add([]byte("aaab"), []byte("aaaaaaaab"), []byte("%61aaa"), uint8(1))
	f.Add([]byte("\x00\x00\n\n \x00"), []byte("\x00\x00       "), []byte("\x00\x00  000000"), uint8(3)) // its first digit is 0
	f.Fuzz(func(t *testing.T, before, value, after []byte, size uint8) {
		if len(value) < Shortest || bytes.Contains(value, []byte("*")) || len(value) > 1<<10 {
			return
		}
		text := string(before) + string(value) + string(after)
		var to bytes.Buffer
		m := Mask(&to, string(value))
		for piece := range slices.Chunk([]byte(text), int(size)+1) {
			if _, err := m.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		stars(t, "fuzz", text, to.String())
		if bytes.Contains(to.Bytes(), value) {
			t.Fatalf("%q passes", to.String())
		}
		if to.String() != MaskText(text, string(value)) {
			t.Fatal("pieces make a difference")
		}
	})
}

func BenchmarkMask(b *testing.B) {
	text := bytes.Repeat([]byte(`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Some words of a model, \"quoted\""}}`+"\n\n"), 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m := Mask(io.Discard, "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789")
		_, _ = m.Write(text)
		_ = m.Close()
	}
}
