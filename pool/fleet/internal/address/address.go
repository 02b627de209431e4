// Package address keeps the passwords in database addresses out of errors, and adds advice to errors of PostgreSQL.
package address

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Wrong describes the error in an address. It does not use the driver's text, which may quote a part of the password.
func Wrong(err error) string {
	for _, known := range [][2]string{
		{"failed to parse as URL", "it is not a valid URL; in a password write % as %25, and / as %2F"},
		{"failed to parse as keyword/value", "it must look like postgres://USER@HOST/NAME or host=HOST user=USER dbname=NAME"},
		{"invalid port", "its port is not a number from 1 to 65535; in a password write / as %2F"},
		{"failed to configure TLS", "its sslmode is unknown, or a file that it names for TLS cannot be read"},
		{"failed to read service", "no readable service file defines its service"},
	} {
		if strings.Contains(err.Error(), "`: "+known[0]) {
			return known[1]
		}
	}
	wrongKey := regexp.MustCompile("`: (?:invalid|unknown|cannot parse) ([a-z_]+)")
	if m := wrongKey.FindStringSubmatch(err.Error()); m != nil {
		return "its " + m[1] + " has no valid value"
	}
	return "it does not look like postgres://USER@HOST/NAME, or names a file that cannot be read"
}

// Passwords holds all passwords that an address has had. It is safe for concurrent use.
type Passwords struct {
	mu   sync.Mutex
	list []string // guarded by mu; longest first
}

// Add adds a password unless it is empty.
func (p *Passwords) Add(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if password != "" && !slices.Contains(p.list, password) {
		p.list = append(p.list, password)
		slices.SortFunc(p.list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
}

// noTLS is the driver's message about a server without TLS. By default the driver then tries without TLS.
const noTLS = "server refused TLS connection"

// Hide replaces all passwords in an error's text and puts the text on one line.
func (p *Passwords) Hide(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' })
	var once []string // the driver tries an address with and without TLS, and repeats the same text
	for _, line := range lines {
		if !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	if n := len(once); n > 2 { // the driver continued without TLS, and the last line is the real failure
		once = append(slices.DeleteFunc(once[:n-1:n-1], func(line string) bool { return strings.HasSuffix(line, noTLS) }), once[n-1])
	}
	text = strings.Join(once, " ")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, password := range p.list {
		text = strings.ReplaceAll(text, password, "xxxxx")
	}
	return text
}

// hiddenError is an error with one line of text and no password.
type hiddenError struct {
	error
	text string
}

func (e *hiddenError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *hiddenError) Unwrap() error { return e.error }

// Without returns the error with the text that Hide returns; nil for nil.
func (p *Passwords) Without(err error) error {
	if err == nil {
		return nil
	}
	if text := p.Hide(err.Error()); text != err.Error() {
		return &hiddenError{err, text}
	}
	return err
}
