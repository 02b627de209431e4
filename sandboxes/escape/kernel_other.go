//go:build !linux

package escape

// kernelAttacks returns none: no sandbox here shares the host's kernel.
func kernelAttacks() []Attack { return nil }
