package disk

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openLevels is how many levels of folders OpenFolders leaves in place: as many as an import accepts.
const openLevels = 250

// OpenFolders gives the owner all permissions on a folder and those below it. It calls visit for every entry below, with
// the entry's parent and name, after visiting the entry's content. It follows no links, and skips folders that it cannot
// open. Folders more than 250 levels deep are moved up into dir, so that few files are open at once.
func OpenFolders(dir string, visit func(parent *os.Root, name string)) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	_ = walk(parent, filepath.Base(dir), openLevels, visit)
	return nil
}

// walker visits the folders below one folder, the top.
type walker struct {
	levels int
	visit  func(*os.Root, string)

	top    *os.File
	prefix string // prefix of the names in top of folders that were too deep
	moved  int    // number of these folders
	failed error  // error of the first folder that was skipped
}

// walk visits the content of a folder recursively. Its error is that of the first folder that it skipped.
func walk(parent *os.Root, name string, levels int, visit func(*os.Root, string)) error {
	root, err := open(parent, name)
	if err != nil {
		return err
	}
	defer root.Close()
	top, err := list(root)
	if err != nil {
		return err
	}
	defer top.Close()
	w := &walker{levels: levels, visit: visit, top: top, prefix: "deep-" + rand.Text() + "-"}
	w.entries(root, top, 1)
	for i := 0; i < w.moved; i++ { // the loop may append to them
		w.folder(root, w.prefix+strconv.Itoa(i), 2)
		visit(root, w.prefix+strconv.Itoa(i))
	}
	return w.failed
}

// open opens a folder, but no link, after giving its owner all permissions.
func open(parent *os.Root, name string) (*os.Root, error) {
	info, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, syscall.ENOTDIR
	}
	if err := parent.Chmod(name, 0o700); err != nil {
		return nil, err
	}
	return parent.OpenRoot(name)
}

func (w *walker) folder(parent *os.Root, name string, level int) {
	dir, err := open(parent, name)
	if err != nil {
		w.leftOut(err)
		return
	}
	defer dir.Close()
	f, err := list(dir)
	if err != nil {
		w.leftOut(err)
		return
	}
	defer f.Close()
	w.entries(dir, f, level)
}

// entries visits the entries of a folder, in batches.
func (w *walker) entries(dir *os.Root, f *os.File, level int) {
	for {
		entries, err := f.ReadDir(nameBatch)
		for _, e := range entries {
			switch {
			case level == 1 && strings.HasPrefix(e.Name(), w.prefix):
				continue // walk visits it later
			case e.IsDir() && level >= w.levels:
				w.moveUp(dir, f, e.Name())
				continue
			case e.IsDir():
				w.folder(dir, e.Name(), level+1)
			}
			w.visit(dir, e.Name())
		}
		if err != nil || len(entries) == 0 { // usually io.EOF
			return
		}
	}
}

// moveUp moves a folder that is too deep into top.
func (w *walker) moveUp(dir *os.Root, f *os.File, name string) {
	err := dir.Chmod(name, 0o700) // moving a folder changes its "..", for which its owner needs write permission
	if err == nil {
		err = unix.Renameat(int(f.Fd()), name, int(w.top.Fd()), w.prefix+strconv.Itoa(w.moved))
	}
	if err != nil {
		w.leftOut(err)
		return
	}
	w.moved++
}

func (w *walker) leftOut(err error) {
	if w.failed == nil && !errors.Is(err, fs.ErrNotExist) {
		w.failed = err
	}
}
