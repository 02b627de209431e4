//go:build !linux

package forward

// LoopbackUp does nothing: only Linux has network namespaces, which start with loopback down.
func LoopbackUp() error { return nil }
