package proc

import "syscall"

// setDeathSignal does nothing: macOS has no parent-death signal.
func setDeathSignal(*syscall.SysProcAttr) {}

// limitMemory does nothing: macOS cannot limit another process.
func limitMemory(int, uint64) error { return nil }
