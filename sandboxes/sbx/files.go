package sbx

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Workspace reads and writes files of a worktree from the host. Whatever the sandbox has made of it, no name and no
// symbolic link leads out of it.
type Workspace struct {
	root *os.Root
}

// OpenWorkspace opens a folder. The caller closes it.
func OpenWorkspace(dir string) (*Workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	return &Workspace{root: root}, nil
}

// Close ends the use of the workspace.
func (w *Workspace) Close() error { return w.root.Close() }

// Put writes a file, and makes its folder.
func (w *Workspace) Put(name string, content []byte) error {
	if err := w.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := w.root.WriteFile(name, content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Get reads a regular file.
func (w *Workspace) Get(name string) ([]byte, error) {
	info, err := w.root.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !info.Mode().IsRegular() { // a pipe would block
		return nil, fmt.Errorf("read %s: it is not a file", name)
	}
	return w.root.ReadFile(name)
}

// Delete removes one file or empty folder.
func (w *Workspace) Delete(name string) error { return w.root.Remove(name) }

// List lists the regular files whose name, or path below the workspace, matches a pattern of [path.Match].
func (w *Workspace) List(pattern string) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, fmt.Errorf("list %s: %w", pattern, err)
	}
	var out []string
	err := fs.WalkDir(w.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		whole, _ := path.Match(pattern, name)
		base, _ := path.Match(pattern, path.Base(name))
		if whole || base {
			out = append(out, name)
		}
		return nil
	})
	return out, err
}
