// Package address keeps passwords in addresses of databases from being shown.
package address

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Wrong says what is wrong with an address. The driver's own words may quote a part of the password: they are not shown.
func Wrong(err error) string {
	for _, known := range [][2]string{
		{"failed to parse as URL", "it is no valid URL; in a password write % as %25, and / as %2F"},
		{"failed to parse as keyword/value", "it is neither like postgres://USER@HOST/NAME nor like host=HOST user=USER dbname=NAME"},
		{"invalid port", "its port is no number from 1 to 65535; in a password write / as %2F"},
		{"failed to configure TLS", "its sslmode is unknown, or a file that it names for TLS cannot be read"},
		{"failed to read service", "its service is in no service file that can be read"},
	} {
		if strings.Contains(err.Error(), "`: "+known[0]) {
			return known[1]
		}
	}
	wrongKey := regexp.MustCompile("`: (?:invalid|unknown|cannot parse) ([a-z_]+)")
	if m := wrongKey.FindStringSubmatch(err.Error()); m != nil {
		return "its " + m[1] + " has no valid value"
	}
	return "it is not like postgres://USER@HOST/NAME, or names a file that cannot be read"
}

// Passwords are all that an address has had. They are safe for concurrent use.
type Passwords struct {
	mu   sync.Mutex
	list []string // guarded by mu; the longest first
}

// Add adds one, unless it is empty.
func (p *Passwords) Add(password string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if password != "" && !slices.Contains(p.list, password) {
		p.list = append(p.list, password)
		slices.SortFunc(p.list, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	}
}

// noTLS is what the driver says of a server without TLS before it tries it without, which is its default.
const noTLS = "server refused TLS connection"

// Hide replaces all of them in an error's text, and puts that on one line.
func (p *Passwords) Hide(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' })
	var once []string // the driver tries an address with TLS and without it, and says both times the same
	for _, line := range lines {
		if !slices.Contains(once, line) {
			once = append(once, line)
		}
	}
	if n := len(once); n > 2 { // it went on without TLS, and that failed for the last reason
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

// hiddenError is an error on one line, without a password.
type hiddenError struct {
	error
	text string
}

func (e *hiddenError) Error() string { return e.text }

// Unwrap is the error with all of its text.
func (e *hiddenError) Unwrap() error { return e.error }

// Without is an error whose text is as Hide leaves it; a nil error stays one.
func (p *Passwords) Without(err error) error {
	if err == nil {
		return nil
	}
	if text := p.Hide(err.Error()); text != err.Error() {
		return &hiddenError{err, text}
	}
	return err
}
