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
	// leastPassword is the minimum length of a password with punctuation, which needs no name to count.
	leastPassword = 12
)

var (
	// anyToken matches what may be a random token, and what may come before the hash of a public file.
	anyToken = pattern.Lazy(`(?:\b(?:sha[0-9]+[-:]|h1:))?[A-Za-z0-9+/_-]{16,}={0,2}`)
	// anyPassword matches what may be a password with punctuation: the rest of ASCII separates values in usual formats.
	anyPassword = pattern.Lazy(`[A-Za-z0-9!@#$%^&*?~+_-]{12,}`)
	// noPassword matches escapes of URLs, lines of files in URLs, and operators and numbers of programs.
	noPassword = pattern.Lazy(`%[0-9A-Fa-f]{2}|#L[0-9]|&&|\$0x`)
	// notPrivate matches the beginning of a key or certificate that is not secret.
	notPrivate = pattern.Lazy(`-----BEGIN [A-Z0-9 ]*(?:PUBLIC KEY|CERTIFICATE)`)
	// publicToken matches hashes of public files, public keys of SSH, headers of JSON web tokens, and pseudo-versions of Go.
	publicToken = pattern.Lazy(`^(?:sha[0-9]+[-:]|h1:|AAAA|eyJ(?:hbGci|0eXAi)|(?:[0-9]+-)?[0-9]{14}-[0-9a-f]{12}$)`)
)

// Tokens returns the tokens in a text that look random, whatever they are for, and each part of a path among them that does; also
// passwords with punctuation. It leaves out public keys, certificates, and hashes of packages.
func Tokens(text []byte) (tokens []string) {
	seen := map[string]bool{}
	add := func(token []byte) {
		if s := string(token); !seen[s] {
			seen[s] = true
			tokens = append(tokens, s)
		}
	}
	public := false
	for line := range bytes.Lines(text) {
		public = (public || notPrivate().Match(line)) && !bytes.Contains(line, []byte("-----END"))
		if public || len(line) < leastPassword {
			continue
		}
		for _, t := range anyToken().FindAll(line, -1) {
			if publicToken().Match(t) {
				continue
			}
			for _, one := range append(bytes.Split(t, []byte("/")), t) {
				if len(one) >= leastToken && randomToken(one) {
					add(one)
				}
			}
		}
		for _, t := range anyPassword().FindAll(line, -1) {
			if punctuated(t) {
				add(t)
			}
		}
	}
	return tokens
}

// randomToken reports whether a part of a token looks random.
func randomToken(t []byte) bool {
	return slices.ContainsFunc(bytes.FieldsFunc(t, func(r rune) bool { return r > 0xff || !letters[r] }), randomPart)
}

// punctuated reports whether a token looks like a password with punctuation: it has letters of both cases and digits, which look random
// together, and punctuation that names lack.
func punctuated(t []byte) bool {
	if !bytes.ContainsAny(t, "!@#$%^&*~") || noPassword().Match(t) {
		return false
	}
	plain := bytes.Map(func(r rune) rune {
		if !letters[r] {
			return -1
		}
		return r
	}, t)
	words, count := changes(plain)
	return count[digit] > 0 && count[small] > 0 && count[large] > 0 && len(plain) >= leastPart && words*2 >= len(plain)
}

// randomPart reports whether letters and digits look random: their kind changes often. In names it changes where a word begins.
func randomPart(t []byte) bool {
	words, count := changes(t)
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

// changes counts in letters and digits how often their kind changes, and the bytes of each kind.
func changes(t []byte) (words int, count [4]int) {
	for i := range t {
		now := kindAt(t, i)
		count[now]++
		capitalised := now == small && kindAt(t, i-1) == large && kindAt(t, i-2) != large
		if now != kindAt(t, i-1) && !capitalised {
			words++
		}
	}
	return words, count
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
