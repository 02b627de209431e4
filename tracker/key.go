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
	hashHex  = 16  // hex digits of the name's SHA-256 in a changed key
	keyStem  = maxKey - hashHex - 1
	noLetter = "issue" // stem for a name without a usable character
)

// Key returns the key for the tracker's own name of an issue. A safe name is its own key. Any other name becomes its readable
// characters, a dash and the start of its SHA-256, so two names share a key only when one of them was chosen to equal the
// other's key.
//
// A safe key is 1 to 100 bytes of [a-z0-9._-]. It starts with a letter or digit, is valid as the last part of a git
// ref, is not a device name on Windows, and is in lower case, so keys do not collide on a file system that ignores case.
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

// deviceName reports whether Windows reserves the name, with any extension.
func deviceName(s string) bool {
	base, _, _ := strings.Cut(s, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}

// keyStemOf returns the letters and digits of a name, without accents. Other characters become one dash per run.
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

// Latin removes accents from lower-case letters and replaces special letters by their usual spelling, such as "ß" by "ss".
func Latin(lower string) string {
	lower = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "ı", "i").Replace(lower)
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(lower))
}
