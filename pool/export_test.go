package pool

import (
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
)

// Disk is the guard of the disk.
func (w *Worker) Disk() *disk.Guard { return w.disk }

// TellAfter sets after how long a wait for the remote is told.
func (w *Worker) TellAfter(d time.Duration) { w.slow = d }
