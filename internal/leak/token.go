package leak

import (
	"bytes"
	"slices"

	"github.com/ralph-pool/ralph/internal/pattern"
)

const (
	// leastToken is the minimum length in bytes of a token that counts as random.
	leastToken = 16
	// leastPart is the minimum length of the part of a token that makes it random: short parts are versions and architectures.
	leastPart = 8
)

var (
	// anyToken matches what may be a random token, and what may come before the hash of a public file.
	anyToken = pattern.Lazy(`(?:\b(?:sha[0-9]+[-:]|h1:))?[A-Za-z0-9+/_-]{16,}={0,2}`)
	// notPrivate matches the beginning of a key or certificate that is not secret.
	notPrivate = pattern.Lazy(`-----BEGIN [A-Z0-9 ]*(?:PUBLIC KEY|CERTIFICATE)`)
	// publicToken matches hashes of public files, public keys of SSH, headers of JSON web tokens, and pseudo-versions of Go.
	publicToken = pattern.Lazy(`^(?:sha[0-9]+[-:]|h1:|AAAA|eyJ(?:hbGci|0eXAi)|(?:[0-9]+-)?[0-9]{14}-[0-9a-f]{12}$)`)
)

// Tokens returns the tokens in a text that look random, whatever they are for, and each part of a path among them that does. It leaves
// out public keys, certificates, and hashes of packages.
func Tokens(text []byte) (tokens []string) {
	seen := map[string]bool{}
	public := false
	for line := range bytes.Lines(text) {
		public = (public || notPrivate().Match(line)) && !bytes.Contains(line, []byte("-----END"))
		if public || len(line) < leastToken {
			continue
		}
		for _, t := range anyToken().FindAll(line, -1) {
			if publicToken().Match(t) {
				continue
			}
			for _, one := range append(bytes.Split(t, []byte("/")), t) {
				if s := string(one); len(one) >= leastToken && !seen[s] && randomToken(one) {
					seen[s] = true
					tokens = append(tokens, s)
				}
			}
		}
	}
	return tokens
}

// randomToken reports whether a part of a token looks random.
func randomToken(t []byte) bool {
	return slices.ContainsFunc(bytes.FieldsFunc(t, func(r rune) bool { return r > 0xff || !letters[r] }), randomPart)
}

// randomPart reports whether letters and digits look random: their kind changes often. In names it changes where a word begins.
func randomPart(t []byte) bool {
	var count [4]int // bytes by their kind
	words := 0
	for i := range t {
		now := kindAt(t, i)
		count[now]++
		capitalised := now == small && kindAt(t, i-1) == large && kindAt(t, i-2) != large
		if now != kindAt(t, i-1) && !capitalised {
			words++
		}
	}
	if len(t) < leastPart || words < 4 || (len(t)-count[digit])*6 < len(t) { // dates have nearly no letters
		return false
	}
	switch {
	case count[digit] == 0:
		return words*2 >= len(t)
	case count[small] > 0 && count[large] > 0:
		return words*3 >= len(t)
	}
	return words*4 >= len(t)
}

const (
	digit = 1 + iota
	small
	large
)

// kindAt returns the kind of a letter or digit; 0 before the first one.
func kindAt(t []byte, i int) int {
	switch {
	case i < 0:
		return 0
	case digits[t[i]]:
		return digit
	case upperCase[t[i]]:
		return large
	}
	return small
}
