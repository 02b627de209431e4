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

// openLevels is how many levels of folders OpenFolders leaves in their place: as many as an import accepts.
const openLevels = 250

// OpenFolders gives the owner all rights on a folder and those below it, and calls visit with the folder above every entry
// and the entry's name, once it has visited what is in the entry. It follows no link. A folder that it cannot open is left
// out. Folders that are more than 250 levels down are moved up into dir itself, so that few files are open at once.
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
	prefix string // of the names in top that folders get which were too deep
	moved  int    // how many there are
	failed error  // about the first folder that was left out
}

// walk visits what is in a folder and below. Its error is about what it left out.
func walk(parent *os.Root, name string, levels int, visit func(*os.Root, string)) error {
	root, err := open(parent, name)
	if err != nil {
		return err
	}
	defer root.Close()
	top, err := root.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	w := &walker{levels: levels, visit: visit, top: top, prefix: "deep-" + rand.Text() + "-"}
	w.entries(root, top, 1)
	for i := 0; i < w.moved; i++ { // there may be more of them by then
		w.folder(root, w.prefix+strconv.Itoa(i), 2)
		visit(root, w.prefix+strconv.Itoa(i))
	}
	return w.failed
}

// open opens a folder, which is no link, with all rights for its owner.
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
	f, err := dir.Open(".")
	if err != nil {
		w.leftOut(err)
		return
	}
	defer f.Close()
	w.entries(dir, f, level)
}

// entries visits the entries of a folder, a part of them at a time.
func (w *walker) entries(dir *os.Root, f *os.File, level int) {
	for {
		entries, err := f.ReadDir(manyLots)
		for _, e := range entries {
			switch {
			case level == 1 && strings.HasPrefix(e.Name(), w.prefix):
				continue // it is visited later
			case e.IsDir() && level >= w.levels:
				w.moveUp(dir, f, e.Name())
				continue
			case e.IsDir():
				w.folder(dir, e.Name(), level+1)
			}
			w.visit(dir, e.Name())
		}
		if err != nil || len(entries) == 0 { // the end, most often
			return
		}
	}
}

// moveUp moves a folder that is too deep to go into.
func (w *walker) moveUp(dir *os.Root, f *os.File, name string) {
	err := dir.Chmod(name, 0o700) // else its owner cannot move it: its ".." changes
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
