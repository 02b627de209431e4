package workspace

import (
	"slices"

	"golang.org/x/sys/unix"
)

// stampsChanges reports whether the folder's file system is known to record the time of every change, including one through a
// memory map. The tmpfs of some kernels does not; other file systems are unknown.
func stampsChanges(dir string) bool {
	var s unix.Statfs_t
	known := []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}
	return unix.Statfs(dir, &s) == nil && slices.Contains(known, int64(s.Type)) //nolint:unconvert // int32 on some machines
}
