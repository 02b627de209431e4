package ecosystem

import "strings"

// Canary is a file that makes sound checks fail when it is added to a checkout.
type Canary struct {
	// Ecosystem is the name of the ecosystem.
	Ecosystem string
	// Path is the slash-separated path from the root of the repository.
	Path    string
	Content []byte
	// Mark is part of the file's name and of its failure message, in upper or lower case. Empty for a canary that a person wrote.
	Mark string
}

// Site is a place where an ecosystem may add a test.
type Site struct {
	// Beside is the base name of an existing test in the folder, or empty.
	Beside string
	// Text is the content of Beside, or of another file of the folder.
	Text []byte
	// Suffix makes names unguessable. It has lower-case letters and digits and starts with a letter.
	Suffix string
}

// Message returns the failure message of the test. In languages in which code can replace the assertions of a test library,
// the canary first tries wrong assertions and fails only if each of them fails. If one accepts everything, the canary passes.
func (p Site) Message() string { return p.Suffix + ": this test must fail" }

// siblingName returns a file name for stem that resembles file: with the first of the beginnings and the first of the endings that
// file has.
func siblingName(file string, beginnings []string, stem string, endings ...string) string {
	for _, b := range beginnings {
		if strings.HasPrefix(file, b) {
			stem = b + stem
			break
		}
	}
	for _, e := range endings {
		if strings.HasSuffix(file, e) {
			return stem + e
		}
	}
	return stem
}
