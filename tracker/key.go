package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	maxKey   = 100 // bytes; leaves room for prefixes and suffixes within a file name's 255
	hashHex  = 16  // hex digits of the original's SHA-256 on a changed key
	keyStem  = maxKey - hashHex - 1
	noLetter = "issue" // stem of a key whose name has no usable character
)

// Key makes an issue's key from the tracker's own name for it. A name that is a safe key is its own key. Any other name
// becomes its readable characters, a dash and the start of its SHA-256, so two names share a key only when one of them
// was chosen to be the other's key.
//
// A safe key is 1 to 100 bytes of [a-z0-9._-]. It starts with a letter or digit, is valid as the last part of a git
// ref, is no device name on Windows, and is in lower case, so keys do not collide on a file system that ignores case.
// Key(Key(x)) == Key(x).
func Key(name string) string {
	if safeKey(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return keyStemOf(name) + "-" + hex.EncodeToString(sum[:])[:hashHex]
}

func safeKey(s string) bool {
	if s == "" || len(s) > maxKey || !alnum(s[0]) {
		return false
	}
	for i := range len(s) {
		if !alnum(s[i]) && !strings.ContainsRune("._-", rune(s[i])) {
			return false
		}
	}
	return !strings.Contains(s, "..") && !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, ".lock") && !deviceName(s)
}

func alnum(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// deviceName reports names that Windows reserves, with any extension.
func deviceName(s string) bool {
	base, _, _ := strings.Cut(s, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}

// keyStemOf keeps the letters and digits of a name, without accents; runs of other characters become one dash.
func keyStemOf(name string) string {
	name = Latin(strings.ToLower(name[:min(len(name), 8*keyStem)]))
	var b strings.Builder
	dash := false
	for i := 0; i < len(name) && b.Len() < keyStem; i++ {
		c := name[i]
		if !alnum(c) {
			dash = b.Len() > 0
			continue
		}
		if dash && b.Len() < keyStem-1 {
			b.WriteByte('-')
		}
		dash = false
		b.WriteByte(c)
	}
	if b.Len() == 0 {
		return noLetter
	}
	return b.String()
}

// Latin writes letters without their accents, and those that are none with an accent as they are usually written.
func Latin(lower string) string {
	lower = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i").Replace(lower)
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(lower))
}
