// Package trust keeps what the user has accepted of the configurations of repositories: the values of their guarded keys.
// What is accepted is exactly a list of values: one more, one less or another value is another list, with another hash.
//
// A Store keeps nothing in memory and is safe for concurrent use, also by several processes: of two that write at the same
// time, one wins.
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
	Sum   string `json:"sum"`   // SHA-256 of the true value, in hex
}

// Of makes a Value: text is the true value in its one canonical spelling.
func Of(key, shown, text string) Value { return Value{Key: key, Shown: shown, Sum: sum(text)} }

// Values are the guarded keys of a file, in the order of their names.
type Values []Value

// Hash is the SHA-256, in hex, over keys and true values. It does not depend on where the repository is.
func (v Values) Hash() string {
	var text strings.Builder
	for _, value := range v {
		fmt.Fprintf(&text, "%q=%q\n", value.Key, value.Sum)
	}
	return sum(text.String())
}

// Keys are the names.
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

// Change is what has become of one key. One of the two is nil when the key is new or gone.
type Change struct{ Before, After *Value }

// Key is the name.
func (c Change) Key() string {
	if c.After != nil {
		return c.After.Key
	}
	return c.Before.Key
}

// Same reports that the value is what it was.
func (c Change) Same() bool { return c.Before != nil && c.After != nil && c.Before.Sum == c.After.Sum }

// Compare lists the keys of both in the order of their names.
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
