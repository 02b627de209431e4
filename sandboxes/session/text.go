package session

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// PutFile writes UTF-8 text to a file, and creates missing parent folders.
func (w *Workspace) PutFile(name, text string) error { return w.PutBytes(name, []byte(text)) }

// GetFile reads a UTF-8 text file.
func (w *Workspace) GetFile(name string) (string, error) { return w.GetFileIn(name, "utf-8") }

// PutFileIn is PutFile in another encoding with the given IANA name, such as "iso-8859-1" or "utf-16". It fails if the
// encoding cannot express the text.
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
		valid = err == nil && !strings.ContainsRune(text, utf8.RuneError) // decoders replace invalid bytes by RuneError
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
