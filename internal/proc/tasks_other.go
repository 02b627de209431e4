//go:build !linux

package proc

// FreeTasks reports no limit: here it counts no threads, so that a process is not ended by it.
func FreeTasks() (n int, limited bool) { return 0, false }

// MaxTasks reports no limit, see FreeTasks.
func MaxTasks() (n int, limited bool) { return 0, false }
