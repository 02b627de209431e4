package leak

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// token has the format of a credential but is none.
var token = "ghp_" + strings.Repeat("aB3xYz", 7)[:36]

// hidden returns simple encodings of a value by name.
func hidden(v string) map[string]string {
	reversed := []byte(v)
	slices.Reverse(reversed)
	coded := hex.EncodeToString([]byte(v))
	all := map[string]string{
		"raw":                 "key " + v + ".",
		"reversed":            string(reversed),
		"query":               "https://x.example/?k=" + url.QueryEscape("k: "+v),
		"every %":             percent(v),
		"percent in part":     "a " + v[:2] + percent(v[2:5]) + v[5:] + "&b=c",
		"JSON":                `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`, "+", `\u002b`).Replace(v) + `"`,
		"\\x":                 "'" + strings.ReplaceAll(percent(v), "%", `\x`) + "'",
		"\\u":                 "'" + strings.ReplaceAll(percent(v), "%", `\u00`) + "'",
		"octal":               "K=$'" + spaced(v, `\%03o`, "") + "'",
		"octal after 0":       `printf %b '` + spaced(v, `\0%03o`, "") + "'",
		"hex":                 coded,
		"upper hex after 0x":  "0x" + strings.ToUpper(coded),
		"hex in lines":        wrap(hex.EncodeToString([]byte("xx"+v)), 60, "\n"),
		"spaced hex":          "key: " + spaced(v, "%02X", " ") + " is it",
		"colons":              "fingerprint=" + spaced(v, "%02X", ":"),
		"a byte a line":       spaced(v, "%02x", "\n"),
		"hexdump -C":          hex.Dump([]byte("some bytes before " + v + " and after")),
		"od -tx1":             dump("before it "+v, " ", ""),
		"xxd":                 dump("before it "+v, ": ", "  before.it.a.key"),
		"UTF-16LE":            wide(binary.LittleEndian, v),
		"UTF-16BE":            "x" + wide(binary.BigEndian, v),
		"UTF-16LE with lines": wide(binary.LittleEndian, "a\n"+v+"\nb"),
		"base32 in lines":     wrap(base32.StdEncoding.EncodeToString([]byte("some words before it "+v)), 30, "\n"),
		"lower base32":        strings.ToLower(base32.StdEncoding.EncodeToString([]byte("ab:" + v))),
		"base64 in lines":     wrap(base64.StdEncoding.EncodeToString([]byte("some words before it: "+v)), 20, "\r\n"),
		"base64 in a comment": "// " + wrap(base64.StdEncoding.EncodeToString([]byte(v)), 30, "\n// "),
		"base64 in JSON":      strings.ReplaceAll(wrap(base64.StdEncoding.EncodeToString([]byte(v)), 30, `\n`), "/", `\/`),
	}
	for name, form := range map[string]struct{ format, by string }{
		"decimal":             {"%d", ","},
		"decimal lines":       {"%d", "\n"},
		"HTML":                {"&#%d;", ""},
		"hexadecimal HTML":    {"&#x%02X;", ""},
		"padded HTML":         {"&#%05d;", ""},
		"padded hexadecimal":  {"&#X%06x;", ""},
		"chr":                 {"chr(%d)", "+"},
		"CHAR":                {"CHAR(%d)", " || "},
		"numbers in a source": {"0x%02x", ", "},
	} {
		all[name] = "x = [" + spaced(v, form.format, form.by) + "]"
	}
	for shift := range 5 {
		text := []byte(strings.Repeat("~", shift) + v + strings.Repeat("y", (shift*2)%5))
		all[fmt.Sprint("base64 at ", shift)] = base64.StdEncoding.EncodeToString(text)
		all[fmt.Sprint("URL base64 at ", shift)] = base64.RawURLEncoding.EncodeToString(text)
		backwards := []byte(all[fmt.Sprint("base64 at ", shift)])
		slices.Reverse(backwards)
		slices.Reverse(text)
		all[fmt.Sprint("base64 backwards at ", shift)] = string(backwards)
		all[fmt.Sprint("base64 of it backwards at ", shift)] = base64.StdEncoding.EncodeToString(text)
		slices.Reverse(text)
		all[fmt.Sprint("base32 at ", shift)] = base32.StdEncoding.EncodeToString(text)
	}
	for name, joint := range map[string]string{
		"Go": `" + "`, "Go lines": "\" +\n\t\t\"", "C lines": "\"\n    \"", "PHP": `' . '`, "SQL": `' || '`, "shell": `""`,
	} {
		all["literals of "+name] = `x = "` + v[:3] + joint + v[3:6] + joint + v[6:] + `"`
	}
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

func percent(s string) string { return "%" + spaced(s, "%02x", "%") }

func spaced(v, format, by string) string {
	var all []string
	for _, c := range []byte(v) {
		all = append(all, fmt.Sprintf(format, c))
	}
	return strings.Join(all, by)
}

// dump formats lines of 16 bytes, each after its offset.
func dump(v, after, column string) string {
	var b strings.Builder
	for i := 0; i < len(v); i += 16 {
		fmt.Fprintf(&b, "%08x%s%s%s\n", i, after, spaced(v[i:min(i+16, len(v))], "%02x", " "), column)
	}
	return b.String()
}

func TestValuesAreFoundInEveryForm(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"a-key-of-no-shape-7391", "sk-live/Öl+\"quoted\"&more=1", "abcdefgh", strings.Repeat("0123456789abcdefghij", 20)} {
		f := New([]string{value, "short", "  "})
		for name, text := range hidden(value) {
			if !f.In(text) {
				t.Errorf("%.30s: %s: %.300q passes", value, name, text)
			}
		}
		for name, text := range hidden("another-value-9248") {
			if f.In(text) {
				t.Errorf("%.30s: %s: %.300q is taken for it", value, name, text)
			}
		}
	}
	marked := New([]string{"pa&ss<1>!\"x", "!@#$%^&*"})
	for _, text := range []string{
		"pa&amp;ss&lt;1&gt;!&quot;x", "p&#97;&#0038;ss&#x3C;1&#62;&excl;&#34;x", "pa&#38ss&#60;1>!\"x", "<i>!@&num;&dollar;%&Hat;&AMP;*</i>",
	} {
		if masked := string(marked.Replace([]byte(text), "-")); !marked.In(text) || strings.Contains(masked, "&") {
			t.Errorf("%q passes: %q", text, masked)
		}
	}
	if marked.In("pa& ss<1>!x & pa&amp; pa&#; &#99999999999999999999; &unknown;") {
		t.Error("an entity is taken for a value")
	}
	few := New([]string{"!1+2=3?!"})
	if !few.In("a !1+2=3?! b") || !few.In(hex.EncodeToString([]byte("!1+2=3?!"))) || few.In("1, 2 and 3") {
		t.Error("a value of few letters")
	}
	if New([]string{"short"}).In("short and ordinary text") || New([]string{"abcdefgh"}).In("abcd\n\nefgh") {
		t.Error("ordinary text is taken for a secret")
	}
}

// Credentials known only by their format are found unencoded, in UTF-16 and in base64. String literals are not joined:
// tests and examples write credentials in such pieces.
func TestCredentialsAreFoundEncoded(t *testing.T) {
	t.Parallel()
	f := New(nil)
	for name, text := range hidden(token) {
		want := name == "raw" || strings.HasPrefix(name, "UTF-16") || strings.Contains(name, "base64 at") || name == "base64 in lines"
		if name != "query" && name != "JSON" && f.In(text) != want {
			t.Errorf("%s: %.300q: found %v", name, text, !want)
		}
	}
	self, err := os.ReadFile("shape_test.go")
	if err != nil || f.In(string(self)) {
		t.Errorf("this package's own samples are taken for secrets (%v)", err)
	}
}

// Checksums, pictures and code of ordinary projects contain no secret.
func TestHonestFiles(t *testing.T) {
	t.Parallel()
	finder := New(nil)
	for _, pattern := range []string{"../../go.sum", "../../docs/*.png", "../../tracker/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{string(content), base64.StdEncoding.EncodeToString(content)} {
				if finder.In(text) {
					t.Errorf("%s is taken for a secret", file)
				}
			}
		}
	}
}

func TestScan(t *testing.T) {
	t.Parallel()
	var found []string
	s := New(nil).Scan(func(name string) { found = append(found, name) })
	for line := range strings.SplitSeq(wrap(base64.StdEncoding.EncodeToString([]byte(token)), 20, "\n"), "\n") {
		s.Line("wrapped", []byte(line))
	}
	s.Line("clean", []byte("package clean"))
	filler := bytes.Repeat([]byte("x "), 50)
	for n := 0; n < 3*chunk; n += len(filler) {
		s.Line("long", filler)
	}
	s.Line("long", []byte(token[:20]+" "+token))
	s.Line("long", []byte(token))
	s.Line("one line", []byte(strings.Repeat("x", 3*chunk)+" "+token))
	s.Line("last", []byte(token))
	s.End()
	if got := strings.Join(found, ", "); got != "wrapped, long, one line, last" {
		t.Errorf("found in %q", got)
	}
}

// A secret across the border of two chunks is found.
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

// Long values across the border of two chunks are found, too, in the longest encoding.
func TestScanLongValuesAcrossChunks(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("a-Long_value/", 300)
	var escaped strings.Builder
	for _, c := range []byte(value) {
		fmt.Fprintf(&escaped, `\u%04x`, c)
	}
	for name, text := range map[string]string{
		"as it is": value, "hexadecimal": hex.EncodeToString([]byte(value)), "escaped": escaped.String(),
		"wrapped": wrap(base64.StdEncoding.EncodeToString([]byte(value)), 20, "\n"),
	} {
		for _, before := range []int{1, len(text) / 2, len(text) - 1} {
			found := 0
			s := Known([]string{value}).Scan(func(string) { found++ })
			s.Line("f", append(bytes.Repeat([]byte(" "), chunk-before), text...)) // cut at the border
			s.End()
			if found != 1 {
				t.Errorf("%s, %d bytes before the border: found %d times", name, before, found)
			}
		}
	}
}

func TestSecretName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"API_TOKEN": true, "db_password": true, "X_KEY": true, "OPENAI_APIKEY": true, "PRIVATE_KEY_FILE": true,
		"MONKEY": false, "PATH": false, "KEYBOARD": false, "HOME": false,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
