package leak

import "github.com/ralph-pool/ralph/internal/pattern"

var (
	// userInfo matches from the end of a URL's scheme to its host, with a password.
	userInfo = pattern.Lazy(`^://[^\s:@/?#"'<>\\]{0,64}:([^\s:@/?#"'<>\\\x60]{8,128})@[A-Za-z0-9\[]`)
	// templateSyntax matches a template for a password: ${PASSWORD}, {password}, $(cat file), %s, ***, [password].
	templateSyntax = pattern.Lazy(`[${}()\[\]*|,;]|%(?:[^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)|\.\.\.`)
	// placeholderWords matches words that people use instead of a real password.
	placeholderWords = pattern.Lazy(`(?i)passw|pwd|secret|example|your|token|change|dummy|redact|placeholder|credential|foobar|xxx`)
)

// password reports whether the "://" at a position is part of a URL with a password.
func password(text []byte, at int) bool {
	if at == 0 || !letters[text[at-1]] {
		return false
	}
	m := userInfo().FindSubmatchIndex(text[at:min(len(text), at+longestShape)])
	if m == nil {
		return false
	}
	secret := text[at+m[2] : at+m[3]]
	return !templateSyntax().Match(secret) && !placeholderWords().Match(secret) && !placeholder(secret) && characterKinds(secret) > 1
}

// longestWord is the maximum length in bytes of a value that counts as a word or a number.
const longestWord = 19

// Word reports whether a value is a word or a number, such as the password "postgres" of a local database.
func Word(value string) bool { return len(value) <= longestWord && characterKinds([]byte(value)) <= 1 }

// characterKinds counts the kinds of characters: capitals, small letters, digits, and others except word separators. A password with
// one kind is a word or a number.
func characterKinds(text []byte) int {
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
