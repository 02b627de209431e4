//go:build !linux

package e2e

func hasLandlock() bool { return false }
