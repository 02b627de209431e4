package leak

import (
	"html"
	"strconv"
)

// longestEntity is the maximum length of an entity in bytes. Browsers accept any number of zeros.
const longestEntity = 32

// entity decodes an entity of HTML that stands for one byte, such as &#65;, &#x0041; and &amp;. A number ends where its digits do. Any
// other text stands for itself.
func entity(text []byte) (c byte, size int) {
	if text[0] != '&' {
		return text[0], 1
	}
	class, base, from := letters, 0, 1
	if len(text) > 2 && text[1] == '#' {
		if class, base, from = digits, 10, 2; text[2]|0x20 == 'x' {
			class, base, from = hexes, 16, 3
		}
	}
	for size = from; size < len(text) && size < longestEntity && class[text[size]]; size++ {
	}
	if size == len(text) || len(text) == 2 && text[1] == '#' {
		return 0, 0
	}
	name, closed := string(text[from:size]), text[size] == ';'
	if closed {
		size++
	}
	if base > 0 {
		if n, err := strconv.ParseUint(name, base, 8); err == nil {
			return byte(n), size
		}
	} else if decoded := html.UnescapeString("&" + name + ";"); closed && len(decoded) == 1 {
		return decoded[0], size
	}
	return '&', 1
}
