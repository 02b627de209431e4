package leak

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"archive/zip"
)

// token has the shape of a credential and is none.
var token = "ghp_" + strings.Repeat("aB3xYz", 7)[:36]

type encoding struct {
	name string
	do   func(string) string
}

func encodings(t testing.TB) []encoding {
	t.Helper()
	var all []encoding
	add := func(name string, do func(string) string) { all = append(all, encoding{name, do}) }
	for i := range 3 {
		pad := strings.Repeat("~", i)
		add(fmt.Sprintf("base64 at %d", i), func(s string) string { return base64.StdEncoding.EncodeToString([]byte(pad + s + pad)) })
		add(fmt.Sprintf("URL base64 at %d", i), func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(pad + s)) })
	}
	for _, width := range []int{20, 60, 64, 76} {
		add(fmt.Sprintf("base64 in lines of %d", width), func(s string) string {
			return wrap(base64.StdEncoding.EncodeToString([]byte("some words before it: "+s)), width, "\n")
		})
	}
	add("base64 in lines of Windows", func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 64, "\r\n") })
	add("base64 in an indented block", func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 30, "\n    ") })
	add("base64 in a comment", func(s string) string { return "// " + wrap(base64.StdEncoding.EncodeToString([]byte(s)), 30, "\n// ") })
	add("base64 in joined literals", func(s string) string {
		return `x := "` + wrap(base64.StdEncoding.EncodeToString([]byte(s)), 30, "\" +\n\t\t\"") + `"`
	})
	add("base64 with line ends escaped", func(s string) string { return wrap(base64.StdEncoding.EncodeToString([]byte(s)), 30, `\n`) })
	add("base64 after a word", func(s string) string { return "key=x" + base64.StdEncoding.EncodeToString([]byte(s)) + "abc" })
	add("hex", func(s string) string { return hex.EncodeToString([]byte(s)) })
	add("upper hex after 0x", func(s string) string { return "0x" + strings.ToUpper(hex.EncodeToString([]byte(s))) })
	add("hex at an odd place", func(s string) string { return "a" + hex.EncodeToString([]byte(s)) })
	add("hex in lines", func(s string) string { return wrap(hex.EncodeToString([]byte(s)), 60, "\n") })
	for name, order := range map[string]binary.AppendByteOrder{"UTF-16LE": binary.LittleEndian, "UTF-16BE": binary.BigEndian} {
		add(name, func(s string) string { return wide(order, s) })
		add(name+" with BOM", func(s string) string { return wide(order, "\ufeff"+s) })
		add(name+" in text", func(s string) string { return "word" + wide(order, "word "+s) + "word" })
	}
	add("percent", func(s string) string { return percent(s) })
	add("percent in part", func(s string) string { return "a " + s[:2] + percent(s[2:5]) + s[5:] + "&b=c" })
	add("query", func(s string) string { return "https://x.example/?k=" + url.QueryEscape("k: "+s) })
	add("\\x", func(s string) string { return "'" + strings.ReplaceAll(percent(s), "%", `\x`) + "'" })
	add("\\u", func(s string) string { return "'" + strings.ReplaceAll(percent(s), "%", `\u00`) + "'" })
	add("gzip", func(s string) string { return squeeze(t, gzipped, s) })
	add("gzip after other data", func(s string) string { return "\x00\x01data" + squeeze(t, gzipped, "a\nb\n"+s+"\n") + "more" })
	add("zlib", func(s string) string { return squeeze(t, zlibbed, s) })
	add("zip", func(s string) string { return squeeze(t, zipped, s) })
	return all
}

func wrap(s string, width int, by string) string {
	var lines []string
	for ; len(s) > width; s = s[width:] {
		lines = append(lines, s[:width])
	}
	return strings.Join(append(lines, s), by)
}

func wide(order binary.AppendByteOrder, s string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

func percent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func gzipped(w io.Writer) (io.WriteCloser, func() error) {
	z := gzip.NewWriter(w)
	return z, func() error { return nil }
}

func zlibbed(w io.Writer) (io.WriteCloser, func() error) {
	z := zlib.NewWriter(w)
	return z, func() error { return nil }
}

type entry struct{ io.Writer }

func (entry) Close() error { return nil }

func zipped(w io.Writer) (io.WriteCloser, func() error) {
	z := zip.NewWriter(w)
	e, err := z.Create("folder/name.txt")
	if err != nil {
		return nil, nil
	}
	return entry{e}, z.Close
}

func squeeze(t testing.TB, how func(io.Writer) (io.WriteCloser, func() error), s string) string {
	t.Helper()
	var b bytes.Buffer
	w, end := how(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCredentialsAreFoundEncoded(t *testing.T) {
	t.Parallel()
	f := New(nil)
	for _, outer := range encodings(t) {
		if !f.In(outer.do(token)) {
			t.Errorf("%s: not found in %.200q", outer.name, outer.do(token))
		}
		if f.In(outer.do("ordinary words, of some length, that are no credential at all")) {
			t.Errorf("%s: found where there is none", outer.name)
		}
		for _, inner := range encodings(t) {
			coded := inner.do(token)
			if strings.HasPrefix(outer.name, "UTF-16") && strings.ContainsFunc(coded, func(r rune) bool { return r == 0 || r > '~' }) {
				continue // UTF-16 is an encoding of text
			}
			if outer.name == "query" && strings.ContainsAny(coded, " \n") {
				continue // whose spaces have become plus signs, which base64 has too
			}
			if text := outer.do(coded); !f.In(text) {
				t.Errorf("%s of %s: not found in %.200q", outer.name, inner.name, text)
			}
		}
	}
	nested := base64.StdEncoding.EncodeToString([]byte(squeeze(t, gzipped, wide(binary.LittleEndian, token))))
	if !f.In(nested) {
		t.Error("three encodings are not looked into")
	}
}

func TestValuesAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	const value = "sk-live/Öl+\"quoted\"&more=1"
	f := New([]string{value, "short", "  ", "abcdefgh"})
	for name, text := range map[string]string{
		"raw":            "key " + value + ".",
		"hex":            hex.EncodeToString([]byte("xx" + value)),
		"query":          "?k=" + url.QueryEscape(value),
		"base64":         base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 shifted": base64.StdEncoding.EncodeToString([]byte("a" + value + "zz")),
		"base64 again":   base64.URLEncoding.EncodeToString([]byte("ab" + value + "z")),
		"JSON":           `{"k":"sk-live/Öl+\"quoted\"\u0026more=1"}`,
		"gzip":           squeeze(t, gzipped, value),
		"short, raw":     "an abcdefgh",
		"short, base64":  base64.StdEncoding.EncodeToString([]byte("abcdefgh")),
	} {
		if !f.In(text) {
			t.Errorf("%s: %q passes", name, text)
		}
	}
	if f.In("short and ordinary text") {
		t.Error("ordinary text is taken for a secret")
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	f := New([]string{"first-value", "first-value-and-more"})
	got := string(f.Replace([]byte("a first-value, first-value-and-more; "+hex.EncodeToString([]byte("first-value"))+token), "[x]"))
	if got != "a [x], [x]; [x]"+token {
		t.Errorf("%q", got)
	}
	if same := []byte("nothing here"); &f.Replace(same, "")[0] != &same[0] {
		t.Error("text without a value is copied")
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	var found []string
	s := New(nil).Scan(func(name string) { found = append(found, name) })
	for _, line := range strings.Split(wrap(base64.StdEncoding.EncodeToString([]byte(token)), 20, "\n"), "\n") {
		s.Line("wrapped", []byte(line))
	}
	for _, line := range bytes.Split([]byte(squeeze(t, gzipped, token)), []byte("\n")) {
		s.Line("packed", line)
	}
	s.Line("clean", []byte("package clean"))
	filler := bytes.Repeat([]byte("x "), 50)
	for n := 0; n < 3*chunk; n += len(filler) {
		s.Line("long", filler)
	}
	s.Line("long", []byte(token[:20]+" "+token))
	s.Line("long", []byte(token))
	s.Line("last", []byte(token))
	s.End()
	if got := strings.Join(found, " "); got != "wrapped packed long last" {
		t.Errorf("found in %q", got)
	}
}

// A line as long as a file does not take a multiple of its size.
func TestScanOfALongLine(t *testing.T) {
	t.Parallel()
	for _, filler := range []string{"x", "%41", "A\x00"} {
		found := 0
		s := New(nil).Scan(func(string) { found++ })
		s.Line("f", []byte(strings.Repeat(filler, 3*chunk/len(filler))+" "+base64.StdEncoding.EncodeToString([]byte(token))))
		s.End()
		held := cap(s.text)
		for i := range s.decoder.out {
			held += cap(s.decoder.out[i]) + cap(s.decoder.runs[i]) + cap(s.decoder.flat.out[i])
		}
		if found != 1 || held > 24*chunk {
			t.Errorf("%q: found %d times, %d bytes held", filler, found, held)
		}
	}
}

// What stands across the border of two chunks is found.
func TestScanAcrossChunks(t *testing.T) {
	t.Parallel()
	coded := wrap(base64.StdEncoding.EncodeToString([]byte(token)), 20, "\n")
	for _, before := range []int{1, 10, 25, 45, 60} {
		var found []string
		s := New(nil).Scan(func(name string) { found = append(found, name) })
		s.Line("f", bytes.Repeat([]byte(" "), chunk-1-before))
		for line := range strings.SplitSeq(coded, "\n") {
			s.Line("f", []byte(line))
		}
		s.End()
		if len(found) != 1 {
			t.Errorf("%d bytes before the border: found %d times", before, len(found))
		}
	}
}
