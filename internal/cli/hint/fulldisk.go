package hint

import (
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// lacksSpace matches what the system and SQLite say of a full disk.
var lacksSpace = pattern.Lazy(`(?i)no space left on device|disk quota exceeded|database or disk is full`)

// hostPath matches a path of this host in an error.
var hostPath = pattern.Lazy(`(^|\s)(/[^\s:]+)`)

// leastRoom is less than any run needs; a disk with less is full.
const leastRoom = 4 << 20

// FullDisk says which disk is full and what frees space, where that is what a text of ralph's is about; empty: it is not. A
// program in a sandbox may have filled a disk of its own, so the disks of the paths that the text names, and of the folder, are
// looked at.
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
			lack = "takes no more files (df -i)"
		}
		if lack != "" {
			return "the disk of " + diskRoot(path) + " " + lack + "; free some there by hand, then `ralph clean` frees " +
				"what ended runs have left; with min-free-mb runs end before a disk is full"
		}
	}
	return ""
}

// existing is the path, or the nearest folder above it that exists.
func existing(path string) string {
	for path = filepath.Clean(path); path != filepath.Dir(path); path = filepath.Dir(path) {
		if _, err := os.Lstat(path); err == nil {
			break
		}
	}
	return path
}

// diskRoot is the highest folder above the path on the same file system.
func diskRoot(path string) string {
	for parent := filepath.Dir(path); parent != path && disk.Same(path, parent); parent = filepath.Dir(path) {
		path = parent
	}
	return path
}
