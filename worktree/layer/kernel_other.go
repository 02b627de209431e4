//go:build !linux

package layer

import "errors"

// whiteout is not supported: no sandbox shows layers on this system.

func whiteout(string) error { return errors.ErrUnsupported }

// Boot returns the same ID for all boots.
func Boot() string { return "" }
