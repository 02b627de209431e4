package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// IsSet reports whether part is neither nil nor a nil pointer.
func IsSet(part any) bool {
	v := reflect.ValueOf(part)
	return part != nil && (v.Kind() != reflect.Pointer || !v.IsNil())
}

// Missing returns an error that names the required fields that are not set.
func (c Config) Missing() error {
	var missing []string
	need := func(ok bool, name string) {
		if !ok {
			missing = append(missing, name)
		}
	}
	need(c.Repo != nil && c.Repo.Dir() != "", "Repo")
	need(IsSet(c.Store), "Store")
	need(IsSet(c.Sandboxes), "Sandboxes")
	need(c.Review.Agent == nil || IsSet(c.Review.Agent), "Review.Agent")
	for n, l := range c.Fallback {
		need(IsSet(l.Agent), fmt.Sprintf("Fallback[%d].Agent", n))
	}
	for n, l := range c.Attempts {
		need(IsSet(l.Agent), fmt.Sprintf("Attempts[%d].Agent", n))
	}
	if len(missing) > 0 {
		return errors.New("required and not set: " + strings.Join(missing, ", "))
	}
	return nil
}
