package session

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// PutFile writes text to a file in UTF-8, and makes the folders above it.
func (w *Workspace) PutFile(name, text string) error { return w.PutBytes(name, []byte(text)) }

// GetFile reads a file of text in UTF-8.
func (w *Workspace) GetFile(name string) (string, error) { return w.GetFileIn(name, "utf-8") }

// PutFileIn is PutFile in another encoding, by its IANA name, such as "iso-8859-1" or "utf-16". Text that the encoding
// cannot express is refused.
func (w *Workspace) PutFileIn(name, text, charset string) error {
	e, err := encodingOf(charset)
	if err == nil {
		text, err = e.NewEncoder().String(text)
	}
	if err != nil {
		return fmt.Errorf("put %q in %s: %w", name, charset, err)
	}
	return w.PutFile(name, text)
}

// GetFileIn is GetFile for a file in another encoding.
func (w *Workspace) GetFileIn(name, charset string) (string, error) {
	e, err := encodingOf(charset)
	if err != nil {
		return "", fmt.Errorf("get %q: %w", name, err)
	}
	content, err := w.GetBytes(name)
	if err != nil {
		return "", err
	}
	text, valid := string(content), utf8.Valid(content)
	if !strings.EqualFold(charset, "utf-8") {
		text, err = e.NewDecoder().String(text)
		valid = err == nil && !strings.ContainsRune(text, utf8.RuneError) // a decoder's word for bytes that it does not know
	}
	if !valid {
		return "", fmt.Errorf("get %q: it is not text in %s; read it as bytes", name, strings.ToUpper(charset))
	}
	return text, nil
}

func encodingOf(charset string) (encoding.Encoding, error) {
	e, err := ianaindex.IANA.Encoding(charset)
	if err == nil && e == nil {
		err = errors.New("the encoding is not supported")
	}
	if err != nil {
		return nil, fmt.Errorf("encoding %q: %w", charset, err)
	}
	return e, nil
}
