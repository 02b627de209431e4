package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// ErrPath is wrapped by errors about a path that does not name a file of the workspace.
var ErrPath = errors.New("path is not one of the workspace")

// ErrTooLarge is wrapped by errors about what is larger than a limit.
var ErrTooLarge = errors.New("too large")

const defaultMaxFile = 64 << 20

// maxDepth is how many folders deep a file may be: each step of a path is looked up on its own, and a program could dig
// for ever.
const maxDepth = 100

// Workspace is the files of a folder that hostile programs may write to at the same time. Paths are relative to it. No
// link that leads out of it is followed, git's own files are left alone, and only regular files are read. It is safe for
// use by several goroutines.
type Workspace struct {
	root     *os.Root
	maxFile  int64
	uid, gid int // whose folder it is
}

// OpenWorkspace opens a folder; no file of it larger than maxFile is read. Zero means 64 MiB. The caller closes it.
func OpenWorkspace(dir string, maxFile int64) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	if maxFile == 0 {
		maxFile = defaultMaxFile
	}
	w := &Workspace{root: root, maxFile: maxFile, uid: -1, gid: -1}
	// Root may work for the user inside: what is put there has to be that user's.
	if info, err := root.Stat("."); err == nil && os.Geteuid() == 0 {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			w.uid, w.gid = int(st.Uid), int(st.Gid)
		}
	}
	return w, nil
}

// Dir is the folder's path on the host.
func (w *Workspace) Dir() string { return w.root.Name() }

// Close frees the folder; after it every method fails. It may be called again.
func (w *Workspace) Close() error { return w.root.Close() }

// inside checks a path and cleans it.
func inside(name string) (string, error) {
	clean := filepath.Clean(name)
	if !filepath.IsLocal(name) || clean == "." || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q: %w: it has to be relative and stay inside", name, ErrPath)
	}
	if strings.Count(clean, string(filepath.Separator)) > maxDepth {
		return "", fmt.Errorf("%.40q…: %w: it is more than %d folders deep", name, ErrPath, maxDepth)
	}
	for part := range strings.SplitSeq(filepath.ToSlash(clean), "/") {
		if strings.EqualFold(part, ".git") {
			return "", fmt.Errorf("%q: %w: it belongs to git", name, ErrPath)
		}
	}
	return clean, nil
}

// PutFile writes text to a file, and makes the folders above it.
func (w *Workspace) PutFile(name, text string) error { return w.PutBytes(name, []byte(text)) }

// PutBytes writes a file, and makes the folders above it. Readers see the old content or the new. A link of that name is
// replaced, not followed; the permissions of a file that was there are kept. What is made belongs to the folder's owner.
func (w *Workspace) PutBytes(name string, content []byte) error {
	clean, err := inside(name)
	if err != nil {
		return fmt.Errorf("put %w", err)
	}
	dir := filepath.Dir(clean)
	if err := w.makeFolder(dir); err != nil {
		return fmt.Errorf("put %q: %w", name, err)
	}
	mode := fs.FileMode(0o644)
	if info, err := w.root.Lstat(clean); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	temp := filepath.Join(dir, ".ralph-put-"+rand.Text())
	if err := w.write(temp, content, mode); err != nil {
		return fmt.Errorf("put %q: %w", name, err)
	}
	if err := w.root.Rename(temp, clean); err != nil {
		return errors.Join(fmt.Errorf("put %q: %w", name, err), w.root.Remove(temp))
	}
	return nil
}

// makeFolder makes a folder and those above it that are missing.
func (w *Workspace) makeFolder(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := w.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := w.makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	err := w.root.Mkdir(dir, 0o755)
	if err == nil {
		err = w.root.Lchown(dir, w.uid, w.gid)
	}
	if errors.Is(err, fs.ErrExist) { // made meanwhile, or no folder, which the file will show
		return nil
	}
	return err
}

// write makes a new file; nothing is left of it after an error.
func (w *Workspace) write(name string, content []byte, mode fs.FileMode) (err error) {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, w.root.Remove(name))
		}
	}()
	if err := f.Chmod(mode); err != nil { // past the umask
		return err
	}
	if err := f.Chown(w.uid, w.gid); err != nil {
		return err
	}
	_, err = f.Write(content)
	return err
}

// GetFile reads a file of text in UTF-8.
func (w *Workspace) GetFile(name string) (string, error) {
	content, err := w.GetBytes(name)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(content) {
		return "", fmt.Errorf("get %q: it is not text in UTF-8; read it as bytes", name)
	}
	return string(content), nil
}

// GetBytes reads a regular file.
func (w *Workspace) GetBytes(name string) ([]byte, error) { return w.get(name, w.maxFile) }

// get reads a file of at most limit bytes.
func (w *Workspace) get(name string, limit int64) ([]byte, error) {
	clean, err := inside(name)
	if err != nil {
		return nil, fmt.Errorf("get %w", err)
	}
	// A pipe without a writer would hold up a plain open for ever.
	f, err := w.root.OpenFile(clean, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("get %q: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("get %q: %w: it is not a regular file", name, ErrPath)
	}
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", name, err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("get %q: %w: it has more than %d bytes", name, ErrTooLarge, limit)
	}
	return content, nil
}

// DeleteFile removes a file or link; a folder is refused.
func (w *Workspace) DeleteFile(name string) error {
	clean, err := inside(name)
	if err != nil {
		return fmt.Errorf("delete %w", err)
	}
	info, err := w.root.Lstat(clean)
	if err != nil {
		return fmt.Errorf("delete %q: %w", name, err)
	}
	if info.IsDir() {
		return fmt.Errorf("delete %q: %w: it is a folder", name, ErrPath)
	}
	if err := w.root.Remove(clean); err != nil {
		return fmt.Errorf("delete %q: %w", name, err)
	}
	return nil
}
