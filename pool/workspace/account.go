package workspace

import (
	"context"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/sandboxes"
)

// diskAccount is what one run writes to the disk of the state folder. On other disks an isolated run writes nothing without a
// limit of its own; without isolation its writes cannot be told from the user's.
type diskAccount struct {
	remove func()

	mu      sync.Mutex
	folders []string // guarded by mu
}

// WatchDisk makes the disk guard measure what the run writes. It calls full if the run has written too much.
func (w *Workspace) WatchDisk(ctx context.Context, full func(*disk.UsageError)) {
	if w.c.Disk == nil || w.Tree == nil {
		return
	}
	a := &diskAccount{folders: w.Tree.Folders()}
	a.remove = w.c.Disk.Add(ctx, disk.Writer{
		Folders: a.list, Marks: []string{w.id, "RALPH_RUN=" + w.id, "RALPH_MARK=" + w.id}, End: full,
	})
	w.disk = a
}

// addFolders adds the folders that a sandbox keeps on this host for its commands.
func (a *diskAccount) addFolders(box sandboxes.Sandbox) {
	if k, ok := sandboxes.As[sandboxes.HostWriter](box); ok && a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.folders = append(a.folders, k.HostFolders()...)
	}
}

func (a *diskAccount) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.folders)
}

// close ends the account, when the run's files are gone or stay for good. It may be called more than once.
func (a *diskAccount) close() {
	if a != nil {
		a.remove()
	}
}
