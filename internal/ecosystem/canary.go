package ecosystem

import "strings"

// Canary is a file that makes sound checks fail when it is added to a checkout.
type Canary struct {
	// Ecosystem is the name of the ecosystem.
	Ecosystem string
	// Path is slash-separated, from the root of the repository.
	Path    string
	Content []byte
	// Mark is in its name and in what it says when it fails, in upper or lower case. Empty where somebody else wrote it.
	Mark string
}

// Site is where an ecosystem is to plant a test.
type Site struct {
	// Beside is the name (without its folder) of a test that stands there, or empty.
	Beside string
	// Text is that of Beside, or of another file of the folder.
	Text []byte
	// Suffix makes names unguessable: lower-case letters and digits, the first a letter.
	Suffix string
}

// Message is what the failing test says. In languages in which code can replace the assertions of a test library, the test fails
// only where each of them still does: where one lets everything pass, the canary does, too.
func (p Site) Message() string { return p.Suffix + ": this test must fail" }

// like returns the stem as a name like that of the file: with the same one of the beginnings, if it has any, and with the
// first of the endings that fits.
func like(file string, beginnings []string, stem string, endings ...string) string {
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
