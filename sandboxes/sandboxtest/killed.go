package sandboxtest

import "github.com/ralph-pool/ralph/sandboxes"

// Killed reports that the notices are one, of processes that were killed at the memory limit, in bytes. Where one is enough the
// kernel may end a second before the first has given its memory back.
func Killed(notices []sandboxes.Notice, memory int64) bool {
	const most = 4
	for n := 1; n <= most && len(notices) == 1; n++ {
		if notices[0] == sandboxes.MemoryNotice(n, memory) {
			return true
		}
	}
	return false
}
