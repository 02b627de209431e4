package leak

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// Shortest is the least length of a value that is looked for, in bytes; shorter ones are in ordinary text by chance.
const Shortest = 8

// forms are the ways in which a value may stand in text. The decoder finds most of them too, but only where the encoded
// text is long enough for it.
func forms(v string) []string {
	v, ok := value(v)
	if !ok {
		return nil
	}
	reversed := []byte(v)
	slices.Reverse(reversed)
	quoted, _ := json.Marshal(v) // a string always marshals
	all := []string{
		v, string(reversed), hex.EncodeToString([]byte(v)), strings.ToUpper(hex.EncodeToString([]byte(v))),
		url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`),
	}
	little, big := utf16Of(v, binary.LittleEndian), utf16Of(v, binary.BigEndian)
	all = append(all, little, big)
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 { // the value may stand anywhere in what was encoded
			all = append(all, inner(enc, v, shift), inner(enc, little, shift))
		}
	}
	for shift := range 5 {
		coded := make([]byte, 0, 2*len(v))
		for _, digit := range digitsOf([]byte(v), 5, shift) {
			coded = append(coded, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[digit])
		}
		all = append(all, string(coded), strings.ToLower(string(coded)))
	}
	return slices.DeleteFunc(all, func(form string) bool { return len(form) < Shortest })
}

// inner is the part of an encoding that does not depend on what stands before and after the value.
func inner(enc *base64.Encoding, v string, shift int) string {
	coded := enc.EncodeToString([]byte(strings.Repeat("\x00", shift) + v))
	head := []int{0, 2, 3}[shift]
	tail := 0
	if (shift+len(v))%3 != 0 {
		tail = 1
	}
	return coded[head : len(coded)-tail]
}

// utf16Of is the text in UTF-16, as Windows writes it.
func utf16Of(v string, order binary.AppendByteOrder) string {
	out := make([]byte, 0, 2*len(v))
	for _, unit := range utf16.Encode([]rune(v)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}
