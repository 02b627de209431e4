package leak

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// hidden are plain ways to hide a value, each of which one command or one line of code reverses.
func hidden(v string) map[string]string {
	dump := hex.Dump([]byte("some bytes before " + v + " and after"))
	var words, swapped []string
	padded := v + strings.Repeat(" ", len(v)%2)
	for i := 0; i < len(padded); i += 2 {
		words = append(words, fmt.Sprintf("%02x%02x", padded[i], padded[i+1]))
		swapped = append(swapped, fmt.Sprintf("%02x%02x", padded[i+1], padded[i]))
	}
	half := len(v) / 2
	all := map[string]string{
		"od -tx1":             lines(strings.Split(spaced(v, "%02x", " "), " "), 16, "%07o "),
		"od -tx1 of much":     lines(strings.Split(spaced("before it "+v, "%02x", " "), " "), 16, "%07o "),
		"od -x":               lines(swapped, 8, "%07o "),
		"od -An -x":           lines(swapped, 8, " "),
		"xxd":                 lines(words, 8, "%08x: "),
		"hexdump -C":          dump,
		"spaced hex":          "key: " + spaced(v, "%02X", " ") + " is it",
		"colons":              "fingerprint=" + spaced(v, "%02X", ":"),
		"Go bytes":            "x := []byte{" + spaced(v, "0x%02x", ", ") + "}",
		"C bytes in lines":    "{\n  " + wrapList(spaced(v, "0x%02x", ", "), 4) + "\n};",
		"a byte a line":       spaced(v, "%02x", "\n"),
		"base32":              base32.StdEncoding.EncodeToString([]byte(v)),
		"base32 at 2":         base32.StdEncoding.EncodeToString([]byte("a:" + v + " ")),
		"base32 in lines":     wrap(base32.StdEncoding.EncodeToString([]byte("some words before it "+v)), 30, "\n"),
		"lower base32":        strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte("ab:" + v))),
		"UTF-16LE":            wide16(v, binary.LittleEndian),
		"UTF-16BE":            "x" + wide16(v, binary.BigEndian),
		"UTF-16LE with lines": wide16("a\n"+v+"\nb", binary.LittleEndian),
		"PowerShell":          base64.StdEncoding.EncodeToString([]byte(wide16(v, binary.LittleEndian))),
		"PowerShell in text":  base64.StdEncoding.EncodeToString([]byte(wide16("k="+v, binary.LittleEndian))),
		"UTF-16 in hex":       hex.EncodeToString([]byte(wide16("text before it: "+v, binary.LittleEndian))),
	}
	for name, joint := range map[string]string{
		"Go": `" + "`, "Go lines": "\" +\n\t\t\"", "C": `" "`, "C lines": "\"\n    \"", "PHP": `' . '`, "Lua": `".."`, "SQL": `' || '`, "Python": "'\n        '", "Python f": `" f"`,
		"backslash": "\" \\\n    \"", "VB": `" & "`, "shell": `""`, "shell mixed": `"'`, "add lines": "\"\n+    + \"",
	} {
		quoted := `x = "` + v[:half] + joint + v[half:] + `"`
		if strings.Contains(joint, "'") && !strings.Contains(joint, `"`) {
			quoted = strings.ReplaceAll(quoted, `"`, "'")
		}
		all["literals of "+name] = quoted
	}
	all["three literals"] = `"` + v[:3] + `" + "` + v[3:half] + `" + "` + v[half:] + `"`
	return all
}

// lines are lines of so many words, each after its offset.
func lines(words []string, width int, offset string) string {
	var b strings.Builder
	for i := 0; i < len(words); i += width {
		if strings.Contains(offset, "%") {
			fmt.Fprintf(&b, offset, i)
		}
		b.WriteString(strings.Join(words[i:min(i+width, len(words))], " ") + "\n")
	}
	return b.String()
}

func wrapList(list string, width int) string {
	words := strings.Split(list, " ")
	for i := width; i < len(words); i += width {
		words[i] = "\n  " + words[i]
	}
	return strings.Join(words, " ")
}

func TestHiddenValuesAreFound(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"hunter2!", "a-key-of-no-shape-7391", "sk-live/Öl+quoted&more=1", strings.Repeat("0123456789abcdefghij", 20)} {
		f := New([]string{value})
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
}

// Of credentials that are known by their shape, encodings are looked into; literals are not joined, because tests and
// examples are written in such pieces.
func TestHiddenCredentialsAreFound(t *testing.T) {
	t.Parallel()
	f := New(nil)
	for name, text := range hidden(token) {
		if found := f.In(text); found == strings.Contains(name, "literals") {
			t.Errorf("%s: %.300q: found %v", name, text, found)
		}
	}
	self, err := os.ReadFile("shape_test.go")
	if err != nil || f.In(string(self)) {
		t.Errorf("this package's own samples are taken for secrets (%v)", err)
	}
}
