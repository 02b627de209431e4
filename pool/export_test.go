package pool

import (
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
)

// Disk returns the disk guard.
func (w *Worker) Disk() *disk.Guard { return w.disk }

// TellAfter sets the time after which a wait for the remote is reported.
func (w *Worker) TellAfter(d time.Duration) { w.reportWaitAfter = d }
