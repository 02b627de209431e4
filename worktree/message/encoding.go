package message

import (
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// A commit may declare another encoding than UTF-8. It is left unchanged if ASCII characters are readable in that encoding.
// Otherwise it is converted to UTF-8, because words that act on a forge may be hidden from all who do not decode it. Text
// that cannot be decoded stays, but loses the declaration, so that nobody decodes it.

const encodingField = "encoding "

// inUTF8 converts the lines of a commit's header, and its message, to UTF-8 if that is needed.
func inUTF8(header []string, message string) ([]string, string) {
	var names []string
	for _, line := range header {
		if name, ok := strings.CutPrefix(line, encodingField); ok {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(names, func(name string) bool { return !plainASCII(name) }) {
		return header, message
	}
	header = slices.DeleteFunc(slices.Clone(header), func(line string) bool { return strings.HasPrefix(line, encodingField) })
	from := encodingOf(names)
	if from == nil {
		return header, message
	}
	for i, line := range header {
		for _, field := range []string{"author ", "committer "} {
			if who, ok := strings.CutPrefix(line, field); ok {
				header[i] = field + decodeName(from, who)
			}
		}
	}
	if text, ok := decode(from, message); ok {
		message = text
	}
	return header, message
}

// plainASCII reports whether an encoding represents ASCII characters, and only these, by their ASCII bytes.
func plainASCII(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{
		"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "iso8859-", "latin", "windows-125", "cp125",
		"koi8-", "euc-",
	},
		func(known string) bool { return strings.HasPrefix(name, known) })
}

// encodingOf returns the encoding, or nil if the name is unknown or there is not exactly one.
func encodingOf(names []string) encoding.Encoding {
	if len(names) != 1 {
		return nil
	}
	name := strings.ToLower(names[0])
	if common, ok := map[string]string{"cp932": "shift_jis", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5"}[name]; ok {
		name = common
	}
	if known, err := htmlindex.Get(name); err == nil {
		return known
	}
	if known, err := ianaindex.IANA.Encoding(name); err == nil {
		return known
	}
	return nil
}

// decodeName decodes the name before the address and time of an author or committer.
func decodeName(from encoding.Encoding, who string) string {
	end := strings.LastIndex(who, " <")
	if end < 0 || !strings.ContainsFunc(who[:end], func(r rune) bool { return r < ' ' || r > '~' }) {
		return who
	}
	if name, ok := decode(from, who[:end]); ok && !strings.ContainsAny(name, "\n<>") {
		return name + who[end:]
	}
	return who
}

// decode fails for text that is not valid in the encoding, or that no commit may contain.
func decode(from encoding.Encoding, text string) (string, bool) {
	out, err := from.NewDecoder().String(text)
	return out, err == nil && !strings.ContainsAny(out, "\uFFFD\x00")
}
