package leak

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/ralph-pool/ralph/internal/pattern"
)

const (
	digits32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
)

// forms returns the encodings in which a value may occur in text.
func forms(v string) []string {
	quoted, _ := json.Marshal(v) // a string always marshals
	digits := hex.EncodeToString([]byte(v))
	all := []string{
		v, backwards(v), url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`),
		digits, strings.ToUpper(digits),
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var wide []byte
		for _, unit := range utf16.Encode([]rune(v)) {
			wide = order.AppendUint16(wide, unit)
		}
		all = append(all, string(wide))
	}
	for _, format := range numbered() {
		var numbers strings.Builder
		for _, c := range []byte(v) {
			fmt.Fprintf(&numbers, format, c)
		}
		all = append(all, numbers.String())
	}
	for shift := range 3 { // the value may begin at any offset of the encoded text
		for _, form := range []string{encoded(v, digits64, 6, shift), encoded(backwards(v), digits64, 6, shift)} {
			all = append(all, form, backwards(form), strings.NewReplacer("+", "-", "/", "_").Replace(form))
		}
	}
	for shift := range 5 {
		all = append(all, encoded(v, digits32, 5, shift))
	}
	return all
}

// numbered lists the formats of a byte as a number. Separators do not count: "%d" also finds 82,118 and &#82;&#118;.
func numbered() []string { return []string{"%d", "x%x", "0x%02x", "chr%d", "char%d"} }

// backwards returns the bytes of a text in the opposite order.
func backwards(text string) string {
	all := []byte(text)
	slices.Reverse(all)
	return string(all)
}

// encoded returns the digits, of size bits each, that the value alone determines when it begins shift bytes into the
// encoded text.
func encoded(v, digits string, size, shift int) string {
	var all []byte
	for i := (8*shift + size - 1) / size; i < 8*(shift+len(v))/size; i++ {
		var digit byte
		for bit := i*size - 8*shift; bit < (i+1)*size-8*shift; bit++ {
			digit = digit<<1 | v[bit/8]>>(7-bit%8)&1
		}
		all = append(all, digits[digit])
	}
	return string(all)
}

// dumpLine matches a line of od, xxd or hexdump -C: an offset, hexadecimal bytes, and the same bytes as characters.
var dumpLine = pattern.Lazy(`^[0-9a-fA-F]{6,16}:? +((?:[0-9a-fA-F]{2} {0,2})+)(?: .*)?\s*$`)
