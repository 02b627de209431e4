package leak

import (
	"bytes"

	"github.com/ralph-pool/ralph/internal/pattern"
)

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

// telegram reports whether ":AA" at a place of the text stands in the token of a Telegram bot: its number, a colon, and
// 35 characters.
func telegram(text []byte, at int) bool {
	const least, most, key = 8, 10, 35
	from := at
	for from > 0 && at-from <= most && digits[text[from-1]] {
		from--
	}
	if n := at - from; n < least || n > most || !begins(text, from, ':') && !bytes.HasSuffix(text[:from], []byte("bot")) {
		return false
	}
	rest := text[at+1:]
	if len(rest) < key || len(rest) > key && dashed[rest[key]] {
		return false
	}
	for _, c := range rest[:key] {
		if !dashed[c] {
			return false
		}
	}
	return !placeholder(rest[:key])
}
