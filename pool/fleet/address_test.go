package fleet

import (
	"errors"
	"strings"
	"testing"
)

// The error names the mistake in an address, and does not say that nothing answers there.
func TestAddress(t *testing.T) {
	t.Parallel()
	for where, want := range map[string]string{
		"mysql://ralph@h/n":                                   "it must look like postgres://USER@HOST/NAME or",
		"postgres://ralph:a%b@h/n":                            "it is not a valid URL; in a password write % as %25",
		"postgres://ralph:a/b@h/n":                            "in a password write / as %2F",
		"postgres://ralph@h:70000/n":                          "its port is not a number",
		"postgres://ralph@h/n?sslmode=on":                     "its sslmode is unknown",
		"postgres://ralph@h/n?connect_timeout=soon":           "its connect_timeout has no valid value",
		"postgres://ralph@h/n?target_session_attrs=rw":        "its target_session_attrs has no valid value",
		"postgres://ralph@h/n?pool_max_conns=many":            "its pool_max_conns has no valid value",
		"postgres://ralph@h/n?service=none&servicefile=/none": "no readable service file defines its service",
	} {
		if _, err := OpenFrom(t.Context(), fixed(where)); !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", where, err, want)
		}
	}
}
