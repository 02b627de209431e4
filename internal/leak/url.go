package leak

import "github.com/ralph-pool/ralph/internal/pattern"

var (
	// userInfo is what stands between a URL's scheme and its host.
	userInfo = pattern.Lazy(`^://[^\s:@/?#"'<>\\]{0,64}:([^\s:@/?#"'<>\\\x60]{8,128})@[A-Za-z0-9\[]`)
	// filledIn is what is put in later: ${PASSWORD}, {password}, $(cat file), %s, ***, [password].
	filledIn = pattern.Lazy(`[${}()\[\]*|,;]|%(?:[^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)|\.\.\.`)
	// said is what people write who mean no password in particular.
	said = pattern.Lazy(`(?i)passw|pwd|secret|example|your|token|change|dummy|redact|placeholder|credential|foobar|xxx`)
)

// password reports whether "://" at a place of the text stands in a URL that has a password.
func password(text []byte, at int) bool {
	if at == 0 || !letters[text[at-1]] {
		return false
	}
	m := userInfo().FindSubmatchIndex(text[at:min(len(text), at+longestShape)])
	if m == nil {
		return false
	}
	secret := text[at+m[2] : at+m[3]]
	return !filledIn().Match(secret) && !said().Match(secret) && !placeholder(secret) && kinds(secret) > 1
}

// longestWord is how long a value of one kind of characters may be that is taken for a word or a number.
const longestWord = 19

// Word reports whether a value is a word or a number, such as the password "postgres" of a database on this machine.
func Word(value string) bool { return len(value) <= longestWord && kinds([]byte(value)) <= 1 }

// kinds counts the kinds of characters: capitals, small letters, digits, and what does not just join words. A password of
// one kind is a word or a number.
func kinds(text []byte) int {
	var upper, lower, digit, other int
	for _, c := range text {
		switch {
		case upperCase[c]:
			upper = 1
		case digits[c]:
			digit = 1
		case letters[c]:
			lower = 1
		case c != '-' && c != '_' && c != '.':
			other = 1
		}
	}
	return upper + lower + digit + other
}
