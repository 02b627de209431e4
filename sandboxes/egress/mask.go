package egress

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/ralph-pool/ralph/internal/leak"
)

// maskable is the secret where it can be told from other text: a few bytes, such as a key that somebody has made up for a
// service of their own, are in every answer by chance, and are no secret. It is empty then, and nothing is masked.
func maskable(secret string) string {
	if len(secret) < leak.Shortest {
		return ""
	}
	return secret
}

// maskText puts stars in the place of the secret.
func maskText(text, secret string) string {
	if secret == "" {
		return text
	}
	return strings.ReplaceAll(text, secret, "***")
}

// maskHeader drops every header value that holds the secret: a service that sends back what it got would hand it to
// the sandbox.
func maskHeader(h http.Header, secret string) {
	if secret == "" {
		return
	}
	for name, values := range h {
		for _, v := range values {
			if strings.Contains(v, secret) {
				h.Del(name)
				break
			}
		}
	}
}

// masking writes what it gets, with stars in the place of the secret. It holds back only what may be the secret's
// beginning, so that a stream is not delayed.
type masking struct {
	to     io.Writer
	secret []byte
	held   []byte // the beginning of the secret
}

func (m *masking) Write(b []byte) (int, error) {
	all := b
	if len(m.held) > 0 {
		all = append(m.held, b...)
		m.held = nil
	}
	if len(m.secret) > 0 && bytes.Contains(all, m.secret) {
		all = bytes.ReplaceAll(all, m.secret, bytes.Repeat([]byte{'*'}, len(m.secret)))
	}
	keep := overlap(all, m.secret)
	m.held = bytes.Clone(all[len(all)-keep:])
	if len(all) > keep {
		if _, err := m.to.Write(all[:len(all)-keep]); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// Close writes what was held back: it was not the secret.
func (m *masking) Close() error {
	if len(m.held) == 0 {
		return nil
	}
	_, err := m.to.Write(m.held)
	m.held = nil
	return err
}

// overlap is how many bytes at the end of text are the beginning of the secret.
func overlap(text, secret []byte) int {
	for n := min(len(text), len(secret)-1); n > 0; n-- {
		if bytes.HasPrefix(secret, text[len(text)-n:]) {
			return n
		}
	}
	return 0
}
