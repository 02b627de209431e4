//go:build !linux

package escape

// kernelAttacks need this host's kernel, which no sandbox shares here.
func kernelAttacks() []Attack { return nil }
