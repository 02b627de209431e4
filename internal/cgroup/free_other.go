//go:build !linux

package cgroup

// Free says that there is no limit: this system has no control groups.
func Free() (n int, limited bool) { return 0, false }
