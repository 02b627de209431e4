package pool

import "github.com/ralph-pool/ralph/internal/disk"

// Disk is the guard of the disk.
func (w *Worker) Disk() *disk.Guard { return w.disk }
