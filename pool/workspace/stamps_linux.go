package workspace

import (
	"slices"

	"golang.org/x/sys/unix"
)

// stampsChanges reports that the folder's file system is known to note the time of every change, also of one through a memory
// map. Some kernels' tmpfs does not, and of others it is not known.
func stampsChanges(dir string) bool {
	var s unix.Statfs_t
	known := []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}
	return unix.Statfs(dir, &s) == nil && slices.Contains(known, int64(s.Type)) //nolint:unconvert // int32 on some machines
}
