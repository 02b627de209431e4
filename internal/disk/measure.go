package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Amount is the space that folders use on a file system.
type Amount struct {
	Bytes int64 // allocated bytes, without the holes of sparse files
	Files int64 // files of every kind, including folders
	// Cut means that the count is incomplete: the usage is at least this much.
	Cut bool
}

// Limits of one measurement: the folders may have been made to exhaust it.
const (
	deepest   = 200     // levels of nested folders
	pending   = 4 << 20 // bytes of the paths of folders still to visit
	nameBatch = 1000    // names read at once
)

// Measure counts what the folders use of the file system that holds place. Missing folders, and files on other file
// systems, count nothing. It follows no links, and counts a file with several hard links once. When ctx ends it returns the
// count so far.
func Measure(ctx context.Context, place string, folders ...string) Amount {
	device, err := filesystem(place)
	if err != nil {
		return Amount{Cut: true}
	}
	m := measure{device: device, seen: map[uint64]bool{}}
	for _, folder := range folders {
		m.folder(ctx, folder)
	}
	return m.Amount
}

type measure struct {
	Amount
	device uint64
	seen   map[uint64]bool // inodes with several hard links
}

// level is a folder to visit.
type level struct {
	path  string // relative to the root
	depth int
}

func (m *measure) folder(ctx context.Context, folder string) {
	info, err := os.Lstat(folder)
	if err != nil || !info.IsDir() {
		return
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		m.Cut = true
		return
	}
	defer root.Close()
	m.count(info)
	waiting := len(".") // bytes of paths
	for todo := []level{{".", 0}}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		waiting -= len(at.path)
		below, ok := m.level(ctx, root, at, pending-waiting)
		if !ok {
			m.Cut = true
		}
		if ctx.Err() != nil {
			return
		}
		for _, l := range below {
			waiting += len(l.path)
		}
		todo = append(todo, below...)
	}
}

// level counts the entries of one folder, and returns its subfolders up to room bytes of paths. all is false if the count
// or the list is incomplete.
func (m *measure) level(ctx context.Context, root *os.Root, at level, room int) (below []level, all bool) {
	// Never open a named pipe that has replaced the folder: the call would wait for a writer.
	dir, err := root.OpenFile(at.path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	defer dir.Close()
	all = true
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(nameBatch)
		for _, e := range entries {
			info, err := e.Info() // lstat, so links are not followed
			if err != nil || !m.count(info) || !info.IsDir() {
				continue // removed meanwhile, already counted, or a mount point
			}
			length := len(at.path) + 1 + len(e.Name())
			if room < length || at.depth >= deepest {
				all = false
				continue
			}
			room -= length
			below = append(below, level{filepath.Join(at.path, e.Name()), at.depth + 1})
		}
		if err != nil { // usually io.EOF
			return below, all
		}
	}
	return below, false
}

// count adds a file, and reports whether it counts.
func (m *measure) count(info os.FileInfo) bool {
	if linksOf(info) > 1 && !info.IsDir() {
		return m.countOnce(info)
	}
	return m.add(info)
}

// countOnce is count for a file that may be seen again.
func (m *measure) countOnce(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || m.seen[st.Ino] || !m.add(info) {
		return false
	}
	m.seen[st.Ino] = true
	return true
}

func linksOf(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // its type differs between systems
	}
	return 1
}

func (m *measure) add(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || deviceOf(info) != m.device {
		return false
	}
	m.Bytes += st.Blocks * 512 // always 512, whatever the block size of the file system
	m.Files++
	return true
}
