//go:build !linux

package layer

import "errors"

// No sandbox shows layers here.

func whiteout(string) error { return errors.ErrUnsupported }

// Boot is the same for all starts.
func Boot() string { return "" }
