package disk

import (
	"cmp"
	"io/fs"
	"os"
	"slices"
)

// Newest lists the folders in dir whose names are wanted, the most recently changed first; none if dir cannot be read.
func Newest(dir string, wanted func(name string) bool) []fs.FileInfo {
	entries, _ := os.ReadDir(dir)
	var all []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.IsDir() && wanted(e.Name()) {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	return all
}
