// Package disk prevents runs from filling the host's disk. [RoomAt] returns the free space of a file system, [Measure] the
// space that folders use, and a [Guard] ends the largest run when free space is short. Package pool uses it.
//
// The content of the folders is hostile: it is counted, and never opened or followed. Everything is safe for concurrent
// use.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Room is the free space of a file system for an unprivileged user.
type Room struct {
	Bytes int64
	Files int64 // inodes that can still be created
	// MostFiles is the total number of inodes; 0: unlimited.
	MostFiles int64
}

// RoomAt returns the free space of the file system that holds the path, with one system call.
func RoomAt(path string) (Room, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(path, &st)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return Room{}, fmt.Errorf("look for free space: %w", &fs.PathError{Op: "statfs", Path: path, Err: err})
		}
		return Room{
			Bytes: int64(st.Bavail) * int64(st.Bsize), //nolint:gosec,unconvert // sizes; their types differ between systems
			Files: int64(st.Ffree), MostFiles: int64(st.Files),
		}, nil
	}
}

// filesystem returns the device number of the file system that holds the path.
func filesystem(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return deviceOf(info), nil
}

// Same reports whether both paths are on the same file system.
func Same(a, b string) bool {
	first, err := filesystem(a)
	if err != nil {
		return false
	}
	second, err := filesystem(b)
	return err == nil && first == second
}

func deviceOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev) //nolint:gosec,unconvert // a number; its type differs between systems
	}
	return 0
}

// Size formats a number of bytes for people.
func Size(bytes int64) string {
	if bytes >= 10<<30 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// Unwritable reports whether an error means that a file system is full or read-only, so that other writes fail, too.
func Unwritable(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS)
}
