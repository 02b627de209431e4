package disk

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
)

// Newest lists the folders in dir whose names are wanted, the most recently changed first; none if dir cannot be read.
func Newest(dir string, wanted func(name string) bool) []fs.FileInfo {
	return newest(dir, func(info fs.FileInfo) bool { return info.IsDir() && wanted(info.Name()) })
}

// NewestFiles lists the regular files in dir, the most recently changed first; none if dir cannot be read.
func NewestFiles(dir string) []fs.FileInfo {
	return newest(dir, func(info fs.FileInfo) bool { return info.Mode().IsRegular() })
}

func newest(dir string, wanted func(fs.FileInfo) bool) (all []fs.FileInfo) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && wanted(info) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return all
}
