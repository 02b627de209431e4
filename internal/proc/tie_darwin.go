package proc

import "syscall"

// tie does nothing: macOS has no parent-death signal.
func tie(*syscall.SysProcAttr) {}

// limitMemory does nothing: macOS cannot limit another process.
func limitMemory(int, uint64) error { return nil }
