package runner

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
)

// shortest is how long a value has to be to be masked: shorter ones are in every text.
const shortest = 6

// masked stands in the place of a secret.
const masked = "[secret]"

// mask is the texts that no log shows.
type mask struct {
	texts [][]byte
	first [256]bool // the bytes that one begins with
}

// newMask takes from an environment ("K=V") the values of secret variables, in the ways in which programs write them.
func newMask(env, secrets []string) *mask {
	var texts []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if len(value) < shortest || !slices.Contains(secrets, name) && !tellsSecret(name) {
			continue
		}
		quoted, err := json.Marshal(value)
		if err == nil {
			texts = append(texts, string(quoted[1:len(quoted)-1]))
		}
		b := []byte(value)
		texts = append(texts, value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString(b),
			base64.RawStdEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b))
	}
	slices.Sort(texts)
	m := &mask{}
	for _, t := range slices.Compact(texts) {
		m.texts = append(m.texts, []byte(t))
		m.first[t[0]] = true
	}
	return m
}

// tellsSecret reports whether a variable's name says that its value is secret.
func tellsSecret(name string) bool {
	name = strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return slices.Contains(strings.Split(name, "_"), "KEY") || strings.HasSuffix(name, "APIKEY")
}

// text masks a whole text.
func (m *mask) text(s string) string {
	var out bytes.Buffer
	w := masking{mask: m, to: &out}
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return out.String()
}

// masking writes what it gets without secrets. It holds back only what may be the beginning of one.
type masking struct {
	mask *mask
	to   io.Writer
	held []byte
}

func (w *masking) Write(p []byte) (int, error) { return len(p), w.write(p, false) }

// Close writes what was held back.
func (w *masking) Close() error { return w.write(nil, true) }

func (w *masking) write(p []byte, last bool) error {
	all := p
	if len(w.held) > 0 {
		all = append(w.held, p...)
		w.held = nil
	}
	from := 0 // what is before it was written
	for i := 0; i < len(all); {
		n, more := w.mask.at(all[i:])
		switch {
		case more && !last: // a secret may begin here and end in what comes
			w.held = bytes.Clone(all[i:])
			_, err := w.to.Write(all[from:i])
			return err
		case n == 0:
			i++
			continue
		}
		if _, err := w.to.Write(append(all[from:i:i], masked...)); err != nil {
			return err
		}
		i += n
		from = i
	}
	_, err := w.to.Write(all[from:])
	return err
}

// at is how long the longest secret is that a text begins with, and whether the text may be the beginning of one.
func (m *mask) at(text []byte) (n int, more bool) {
	if !m.first[text[0]] {
		return 0, false
	}
	for _, secret := range m.texts {
		if bytes.HasPrefix(text, secret) {
			n = max(n, len(secret))
		}
		more = more || len(text) < len(secret) && bytes.HasPrefix(secret, text)
	}
	return n, more
}
