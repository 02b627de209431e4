package sandboxtest

import "github.com/ralph-pool/ralph/sandboxes"

// Killed reports whether the notices are a single one, about processes killed at the memory limit, in bytes. The kernel may
// kill more than one process: a second one before the memory of the first is free.
func Killed(notices []sandboxes.Notice, memory int64) bool {
	const most = 4
	for n := 1; n <= most && len(notices) == 1; n++ {
		if notices[0] == sandboxes.MemoryNotice(n, memory) {
			return true
		}
	}
	return false
}
