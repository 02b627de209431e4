package config

import (
	"errors"
	"fmt"
	"strings"
)

// Missing reports what is required and not there.
func (c Config) Missing() error {
	var missing []string
	need := func(ok bool, name string) {
		if !ok {
			missing = append(missing, name)
		}
	}
	need(c.Repo != nil, "Repo")
	need(c.Store != nil, "Store")
	need(c.Sandboxes != nil, "Sandboxes")
	for n, l := range c.Next {
		need(l.Agent != nil, fmt.Sprintf("Next[%d].Agent", n))
	}
	for n, l := range c.Attempts {
		need(l.Agent != nil, fmt.Sprintf("Attempts[%d].Agent", n))
	}
	if len(missing) > 0 {
		return errors.New("required and not set: " + strings.Join(missing, ", "))
	}
	return nil
}
