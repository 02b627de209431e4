//go:build !linux

package cgroup

// Free reports no limit: this system has no control groups.
func Free() (n int, limited bool) { return 0, false }
