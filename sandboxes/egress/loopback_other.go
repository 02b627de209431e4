//go:build !linux

package egress

// LoopbackUp does nothing: only Linux has network namespaces, which start with loopback down.
func LoopbackUp() error { return nil }
