package sandboxes

import "fmt"

// NoticesOf gives the notices of a sandbox that has any.
func NoticesOf(s Sandbox) []string {
	if n, ok := s.(Noticer); ok {
		return n.Notices()
	}
	return nil
}

// LeftIn gives what of a sandbox's files was refused when they were last copied back; empty for one that copies none.
func LeftIn(s Sandbox) string {
	if c, ok := s.(Copier); ok {
		return c.Left()
	}
	return ""
}

// MemoryNotice says that processes were killed because the sandbox had used up its memory, in bytes.
func MemoryNotice(processes int, memory int64) string {
	return fmt.Sprintf("%s killed at the memory limit of %d MB (memory-mb)", were(processes), memory>>20)
}

// PIDsNotice says that processes were killed because there were too many.
func PIDsNotice(processes, most int) string {
	return fmt.Sprintf("%s killed at the limit of %d processes (pids)", were(processes), most)
}

func were(processes int) string {
	if processes == 1 {
		return "1 process was"
	}
	return fmt.Sprintf("%d processes were", processes)
}
