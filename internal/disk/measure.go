package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Amount is what folders take of a file system.
type Amount struct {
	Bytes int64 // allocated: holes of sparse files are none
	Files int64 // of every kind, folders too
	// Cut says that not all of it was counted: it is at least that much.
	Cut bool
}

// Limits of one look at folders that may have been made to last.
const (
	deepest  = 200     // folders below each other
	pending  = 4 << 20 // bytes of the paths of folders that wait to be looked at
	manyLots = 1000    // names read at once
)

// Measure counts what the folders take of the file system that holds place; what of them lies elsewhere, or is not there,
// counts nothing. It follows no link, and counts a file with several names once. When ctx ends it returns what it has.
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
	seen   map[uint64]bool // files with several names
}

// level is a folder to look at.
type level struct {
	path  string // within the root
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

// level counts what is in one folder, and returns the folders in it, as far as their paths have so many bytes; false if that
// is not all.
func (m *measure) level(ctx context.Context, root *os.Root, at level, room int) (below []level, all bool) {
	// Never a pipe that has taken the folder's place: opening it would wait for a writer.
	dir, err := root.OpenFile(at.path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	}
	defer dir.Close()
	all = true
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(manyLots)
		for _, e := range entries {
			info, err := e.Info() // lstat
			if err != nil || !m.count(info) || !info.IsDir() {
				continue // removed meanwhile, counted before, mounted here
			}
			length := len(at.path) + 1 + len(e.Name())
			if room < length || at.depth >= deepest {
				all = false
				continue
			}
			room -= length
			below = append(below, level{filepath.Join(at.path, e.Name()), at.depth + 1})
		}
		if err != nil { // the end, most often
			return below, all
		}
	}
	return below, false
}

// count adds one file, and says whether it was one to count.
func (m *measure) count(info os.FileInfo) bool {
	if linksOf(info) > 1 && !info.IsDir() {
		return m.once(info)
	}
	return m.add(info)
}

// once is count for a file that may be met again.
func (m *measure) once(info os.FileInfo) bool {
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
	m.Bytes += st.Blocks * 512 // whatever the file system's own blocks are
	m.Files++
	return true
}
