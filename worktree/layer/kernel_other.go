//go:build !linux

package layer

import "errors"

// No sandbox shows layers here.

func whiteout(string) error { return errors.ErrUnsupported }

func boot() string { return "" }
