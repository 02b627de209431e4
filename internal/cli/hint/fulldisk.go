package hint

import (
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// lacksSpace matches the errors of the system and of SQLite for a full disk.
var lacksSpace = pattern.Lazy(`(?i)no space left on device|disk quota exceeded|database or disk is full`)

// hostPath matches an absolute path in an error.
var hostPath = pattern.Lazy(`(^|\s)(/[^\s:]+)`)

// leastRoom is the free space in bytes below which a disk counts as full: less than any run needs.
const leastRoom = 4 << 20

// FullDisk says which disk is full and what frees space, if text is about a full disk; else it returns "". It checks the disks of
// the paths in text, and of folder: a program may have filled a disk of its own in its sandbox, which needs no hint.
func FullDisk(text, folder string) string {
	if !lacksSpace().MatchString(text) {
		return ""
	}
	var paths []string
	for _, found := range hostPath().FindAllStringSubmatch(text, -1) {
		paths = append(paths, found[2])
	}
	if folder != "" {
		paths = append(paths, folder)
	}
	for _, path := range paths {
		path = existing(path)
		room, err := disk.RoomAt(path)
		lack := ""
		switch {
		case err != nil:
		case room.Bytes < leastRoom:
			lack = "is full"
		case room.MostFiles > 0 && room.Files == 0:
			lack = "has no free inodes (df -i)"
		}
		if lack != "" {
			return "the disk of " + diskRoot(path) + " " + lack + "; free some space by hand, then `ralph clean` removes " +
				"what ended runs have left; min-free-mb ends runs before a disk is full"
		}
	}
	return ""
}

// existing returns the path, or its nearest parent that exists.
func existing(path string) string {
	for path = filepath.Clean(path); path != filepath.Dir(path); path = filepath.Dir(path) {
		if _, err := os.Lstat(path); err == nil {
			break
		}
	}
	return path
}

// diskRoot returns the topmost parent on the path's file system.
func diskRoot(path string) string {
	for parent := filepath.Dir(path); parent != path && disk.Same(path, parent); parent = filepath.Dir(path) {
		path = parent
	}
	return path
}
