package inside

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// copyHome copies the layer of the home. No command runs yet, so neither side changes meanwhile. Existing entries of the
// home are mounts or lead to one, and are not changed.
func copyHome(layer, to string) error {
	bufs := sync.Pool{New: func() any { return new([256 << 10]byte) }}
	var group errgroup.Group
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	var folders []entry
	links := map[uint64]string{} // first copy of a file with several hard links, by inode
	var more []entry             // the other names of these files
	err := filepath.WalkDir(layer, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == layer {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		at := entry{from: path, to: to + strings.TrimPrefix(path, layer), info: info}
		switch info.Mode().Type() {
		case fs.ModeDir:
			if err := os.Mkdir(at.to, 0o700); errors.Is(err, fs.ErrExist) {
				return fs.SkipDir
			} else if err != nil {
				return err
			}
			folders = append(folders, at)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err == nil {
				err = os.Symlink(target, at.to)
			}
			return ignoreExists(err)
		case 0:
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
				if first := links[st.Ino]; first != "" {
					at.from = first
					more = append(more, at)
					return nil
				}
				links[st.Ino] = at.to
			}
			group.Go(func() error {
				buf, _ := bufs.Get().(*[256 << 10]byte)
				defer bufs.Put(buf)
				if err := ignoreExists(at.copy(buf[:])); err != nil {
					return &fs.PathError{Op: "copy", Path: at.from, Err: err}
				}
				return nil
			})
		}
		return nil // pipes and sockets are useless without their other end
	})
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	for _, at := range more {
		if err := ignoreExists(os.Link(at.from, at.to)); err != nil {
			return err
		}
	}
	for _, at := range slices.Backward(folders) {
		if err := at.finish(); err != nil {
			return err
		}
	}
	return nil
}

func ignoreExists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// entry is a file or folder of the layer, with its path in the home.
type entry struct {
	from, to string
	info     fs.FileInfo
}

// copy uses raw system calls: caches have many small files, and package os makes twice as many calls.
func (e entry) copy(buf []byte) (err error) {
	from, err := unix.Open(e.from, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(from) }()
	to, err := unix.Open(e.to, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(to)) }()
	for left := e.info.Size(); left > 0; {
		n, err := unix.Read(from, buf)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		for part := buf[:n]; len(part) > 0; {
			w, err := unix.Write(to, part)
			if err != nil {
				return err
			}
			part = part[w:]
		}
		left -= int64(n)
	}
	return e.finish()
}

// finish sets the mode and the modification time, which tools compare.
func (e entry) finish() error {
	return errors.Join(os.Chmod(e.to, e.info.Mode().Perm()), os.Chtimes(e.to, time.Time{}, e.info.ModTime()))
}
