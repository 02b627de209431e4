package session

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/internal/disk"
)

// ErrPath is wrapped by errors about a path that does not name a file of the workspace.
var ErrPath = errors.New("path is not one of the workspace")

// ErrTooLarge is wrapped by errors about something that is larger than a limit.
var ErrTooLarge = errors.New("too large")

const defaultMaxFile = 64 << 20

// maxDepth is how many folders deep a file may be: each step of a path is looked up on its own, and a hostile program
// could make any number of them.
const maxDepth = 100

// Workspace reads and writes files of a folder that hostile programs may change at the same time. Paths are relative to
// the folder. No link that leads out of it, or to git's own files, is followed; git's own files are refused, and only regular
// files are read. It is safe for use by several goroutines.
type Workspace struct {
	root     *os.Root
	maxFile  int64
	uid, gid int // the folder's owner
}

// OpenWorkspace opens a folder; no file of it larger than maxFile is read. Zero means 64 MiB. The caller closes it.
func OpenWorkspace(dir string, maxFile int64) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	w := &Workspace{root: root, maxFile: cmp.Or(maxFile, defaultMaxFile), uid: -1, gid: -1}
	// When ralph is root, new files have to belong to the user inside.
	if info, err := root.Stat("."); err == nil && os.Geteuid() == 0 {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			w.uid, w.gid = int(st.Uid), int(st.Gid)
		}
	}
	return w, nil
}

// Close frees the folder; after it every method fails. It may be called again.
func (w *Workspace) Close() error { return w.root.Close() }

// inside checks a path and cleans it.
func inside(name string) (string, error) {
	clean := filepath.Clean(name)
	switch {
	case !filepath.IsLocal(name) || clean == "." || strings.ContainsRune(name, 0):
		return "", fmt.Errorf("%w: it has to be relative and stay inside", ErrPath)
	case strings.Count(clean, string(filepath.Separator)) > maxDepth:
		return "", fmt.Errorf("%w: it is more than %d folders deep", ErrPath, maxDepth)
	}
	for part := range strings.SplitSeq(filepath.ToSlash(clean), "/") {
		if strings.EqualFold(part, ".git") {
			return "", fmt.Errorf("%w: it belongs to git", ErrPath)
		}
	}
	return clean, nil
}

// with calls do with a checked path, and adds the action to errors.
func (w *Workspace) with(verb, name string, do func(clean string) error) error {
	clean, err := inside(name)
	if err == nil {
		err = do(clean)
	}
	if err != nil {
		return fmt.Errorf("%s %.80q: %w", verb, name, err)
	}
	return nil
}

// PutBytes writes a file, and makes the folders above it. Readers see the old content or the new. A link of that name is
// replaced, not followed; a file that was there keeps its permissions. New files and folders belong to the folder's owner.
func (w *Workspace) PutBytes(name string, content []byte) error {
	return w.with("put", name, func(clean string) error {
		dir, base, err := w.find(clean, false, w.makeFolder)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		mode := fs.FileMode(0o644)
		if info, err := dir.Lstat(base); err == nil && info.Mode().IsRegular() {
			mode = info.Mode().Perm()
		}
		temp := ".ralph-put-" + rand.Text()
		err = w.write(dir, temp, content, mode)
		if err == nil {
			err = dir.Rename(temp, base)
		}
		if err != nil {
			_ = dir.Remove(temp) // it may never have been made
		}
		return err
	})
}

// makeFolder makes a folder of the owner's.
func (w *Workspace) makeFolder(dir *os.Root, name string) error {
	err := dir.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) { // made meanwhile
		return nil
	}
	if err == nil {
		err = dir.Lchown(name, w.uid, w.gid)
	}
	return err
}

// write makes a new file.
func (w *Workspace) write(dir *os.Root, name string, content []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(mode), f.Chown(w.uid, w.gid)) // the mode whatever the umask is
	if err == nil {
		_, err = f.Write(content)
	}
	return errors.Join(err, f.Close())
}

// GetBytes reads a regular file.
func (w *Workspace) GetBytes(name string) ([]byte, error) { return w.get(name, w.maxFile) }

// get reads a file of at most limit bytes.
func (w *Workspace) get(name string, limit int64) (content []byte, err error) {
	err = w.with("get", name, func(clean string) error {
		dir, base, err := w.find(clean, true, nil)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		f, _, err := disk.OpenRegular(dir, base)
		if errors.Is(err, disk.ErrSpecial) {
			err = fmt.Errorf("%w: %w", ErrPath, err)
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		read, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(read)) > limit {
			return fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, limit)
		}
		content = read
		return err
	})
	return content, err
}

// DeleteFile removes a file or link; a folder is refused.
func (w *Workspace) DeleteFile(name string) error {
	return w.with("delete", name, func(clean string) error {
		dir, base, err := w.find(clean, false, nil)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }()
		info, err := dir.Lstat(base)
		if err != nil {
			return err
		}
		if info.IsDir() {
			return fmt.Errorf("%w: it is a folder", ErrPath)
		}
		return dir.Remove(base)
	})
}
