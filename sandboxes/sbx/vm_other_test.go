//go:build !linux

package sbx_test

import (
	"errors"
	"testing"
)

// Simulating a microVM needs namespaces, which only Linux has.
var errNoMachine = errors.New("no microVM can be played here")

func (shim) create(string, []string) error { return errNoMachine }
func (shim) stop(string) error             { return errNoMachine }
func (shim) exec([]string) (int, error)    { return 0, errNoMachine }
func (shim) clean(*testing.T)              {}
