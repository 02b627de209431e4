// Package trust stores what the user has accepted of a repository's configuration: the values of its guarded keys. The user
// always accepts a complete list of values. Any difference needs consent again, unless it only takes items off a list of grants.
//
// A Store keeps nothing in memory and is safe for concurrent use, also by several processes: the last of several writes wins.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Value is the value of one guarded key.
type Value struct {
	Key   string `json:"key"`
	Shown string `json:"shown"` // for people: one line, control characters escaped, secrets hidden
	Sum   string `json:"sum"`   // SHA-256 of the real value, in hex
	// Grants are the SHA-256 of each item of a list from which items may be taken without consent.
	Grants []string `json:"grants,omitempty"`
}

// Of returns a Value. text is the real value in its canonical spelling.
func Of(key, shown, text string) Value { return Value{Key: key, Shown: shown, Sum: sum(text)} }

// Granting returns the value with its Grants: the items of its list.
func (v Value) Granting(items []string) Value {
	for _, item := range items {
		v.Grants = append(v.Grants, sum(item))
	}
	return v
}

// Values are the guarded keys of a file, sorted by name.
type Values []Value

// Hash returns the SHA-256 of keys and real values, in hex. It does not depend on the repository's path.
func (v Values) Hash() string {
	var text strings.Builder
	for _, value := range v {
		fmt.Fprintf(&text, "%q=%q\n", value.Key, value.Sum)
	}
	return sum(text.String())
}

// Keys returns the names of the keys.
func (v Values) Keys() []string {
	var names []string
	for _, value := range v {
		names = append(names, value.Key)
	}
	return names
}

func (v Values) find(key string) *Value {
	if i := slices.IndexFunc(v, func(o Value) bool { return o.Key == key }); i >= 0 {
		return &v[i]
	}
	return nil
}

// Change is the old and the new value of a key. One of them is nil for a new or a removed key.
type Change struct{ Before, After *Value }

// Key returns the name of the key.
func (c Change) Key() string {
	if c.After != nil {
		return c.After.Key
	}
	return c.Before.Key
}

// Same reports whether the value is unchanged.
func (c Change) Same() bool { return c.Before != nil && c.After != nil && c.Before.Sum == c.After.Sum }

// Accepted reports whether consent to the old value covers the new one: it is the same, or a list of grants has lost items.
func (c Change) Accepted() bool {
	switch {
	case c.Before == nil || c.Same():
		return c.Same()
	case c.After == nil:
		return len(c.Before.Grants) > 0
	}
	added := func(item string) bool { return !slices.Contains(c.Before.Grants, item) }
	return len(c.After.Grants) > 0 && !slices.ContainsFunc(c.After.Grants, added)
}

// Compare returns the changes from before to after, sorted by key.
func Compare(before, after Values) []Change {
	names := slices.Compact(slices.Sorted(slices.Values(append(before.Keys(), after.Keys()...))))
	changes := make([]Change, len(names))
	for i, name := range names {
		changes[i] = Change{before.find(name), after.find(name)}
	}
	return changes
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}
