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

// ErrPath is wrapped by errors about a path that is not a file of the workspace.
var ErrPath = errors.New("path is not one of the workspace")

// ErrTooLarge is wrapped by errors about data that exceeds a limit.
var ErrTooLarge = errors.New("too large")

const defaultMaxFile = 64 << 20

// maxDepth is the maximum depth of a file: each step of a path is a lookup, and a hostile program could create any number.
const maxDepth = 100

// Workspace reads and writes files of a folder that hostile programs may change at the same time. Paths are relative to the
// folder. Workspace follows no link out of the folder or to git's own files, refuses git's own files, and reads only
// regular files. It is safe for concurrent use.
type Workspace struct {
	root     *os.Root
	maxFile  int64
	uid, gid int // of the folder
}

// OpenWorkspace opens a folder; the caller closes it. Files larger than maxFile bytes are not read; zero means 64 MiB.
func OpenWorkspace(dir string, maxFile int64) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	w := &Workspace{root: root, maxFile: cmp.Or(maxFile, defaultMaxFile), uid: -1, gid: -1}
	// If ralph is root, new files must belong to the user inside.
	if info, err := root.Stat("."); err == nil && os.Geteuid() == 0 {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			w.uid, w.gid = int(st.Uid), int(st.Gid)
		}
	}
	return w, nil
}

// Close closes the folder; after it every method fails. It may be called again.
func (w *Workspace) Close() error { return w.root.Close() }

// cleanPath checks a path and returns it cleaned.
func cleanPath(name string) (string, error) {
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

// withCleanPath calls do with a checked path, and adds the verb to errors.
func (w *Workspace) withCleanPath(verb, name string, do func(clean string) error) error {
	clean, err := cleanPath(name)
	if err == nil {
		err = do(clean)
	}
	if err != nil {
		return fmt.Errorf("%s %.80q: %w", verb, name, err)
	}
	return nil
}

// PutBytes writes a file atomically, and creates missing parent folders. It replaces a link instead of following it, and
// keeps the permissions of an existing file. New files and folders belong to the folder's owner.
func (w *Workspace) PutBytes(name string, content []byte) error {
	return w.withCleanPath("put", name, func(clean string) error {
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
			_ = dir.Remove(temp) // it may not exist
		}
		return err
	})
}

// makeFolder creates a folder that belongs to the owner.
func (w *Workspace) makeFolder(dir *os.Root, name string) error {
	err := dir.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) { // created meanwhile
		return nil
	}
	if err == nil {
		err = dir.Lchown(name, w.uid, w.gid)
	}
	return err
}

// write creates a new file.
func (w *Workspace) write(dir *os.Root, name string, content []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(mode), f.Chown(w.uid, w.gid)) // sets the mode regardless of the umask
	if err == nil {
		_, err = f.Write(content)
	}
	return errors.Join(err, f.Close())
}

// GetBytes reads a regular file.
func (w *Workspace) GetBytes(name string) ([]byte, error) { return w.get(name, w.maxFile) }

// get reads a file of at most limit bytes.
func (w *Workspace) get(name string, limit int64) (content []byte, err error) {
	err = w.withCleanPath("get", name, func(clean string) error {
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

// DeleteFile removes a file or link. It fails for a folder.
func (w *Workspace) DeleteFile(name string) error {
	return w.withCleanPath("delete", name, func(clean string) error {
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
