package local

import (
	"context"
	"path/filepath"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/ralph-pool/ralph/tracker"
)

var _ tracker.Namer = (*Tracker)(nil)

// KeyOf returns the key of an issue that a person named by its key or file, with or without .md and the folder. If no file has
// exactly this name, KeyOf ignores case and the encoding of accents, provided that only one file matches.
func (t *Tracker) KeyOf(ctx context.Context, name string) (key string, ok bool) {
	root, err := t.open(ctx)
	if err != nil {
		return "", false
	}
	defer root.Close()
	name = strings.TrimSuffix(filepath.Base(name), ".md")
	key = tracker.Key(name)
	if _, err := find(root, key); err == nil {
		return key, true
	}
	issues, _, err := names(root)
	if err != nil {
		return "", false
	}
	found := ""
	for _, n := range issues {
		if !strings.EqualFold(norm.NFC.String(stem(n)), norm.NFC.String(name)) {
			continue
		}
		if found != "" {
			return "", false
		}
		found = n
	}
	return tracker.Key(stem(found)), found != ""
}

// Names returns, by key, the file names without .md that differ from their keys.
func (t *Tracker) Names(ctx context.Context) map[string]string {
	root, err := t.open(ctx)
	if err != nil {
		return nil
	}
	defer root.Close()
	issues, _, err := names(root)
	if err != nil {
		return nil
	}
	byKey := map[string]string{}
	for _, n := range issues {
		if key := tracker.Key(stem(n)); key != stem(n) {
			byKey[key] = stem(n)
		}
	}
	return byKey
}
