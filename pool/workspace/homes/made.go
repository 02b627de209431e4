package homes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/layer"
)

// Life is how long files that setup has put into a worktree are used: things outside the repository change, too.
const Life = 24 * time.Hour

// maxMade is the maximum number of files and folders of a worktree that are kept, not counting those inside one of these
// folders.
const maxMade = 200

// readMade lists the files that setup has put into the worktree. ok is false if they are not kept, older than Life, or from
// before the machine's last start.
func readMade(dir string) (made []string, ok bool, err error) {
	file := filepath.Join(dir, madeFile)
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	text, failed := os.ReadFile(file)
	if err := errors.Join(err, failed); err != nil {
		return nil, false, err
	}
	boot, names, _ := strings.Cut(string(text), "\x00")
	made = strings.FieldsFunc(names, func(r rune) bool { return r == 0 })
	return made, boot == layer.Boot() && time.Since(info.ModTime()) < Life, nil
}

// isOld reports whether a home has files of a worktree that are too old.
func isOld(dir string) bool {
	_, ok, err := readMade(dir)
	_, none := os.Lstat(filepath.Join(dir, madeFile))
	return none == nil && err == nil && !ok
}

// KeepMade moves the files that setup has put into the worktree of a commit into the home. Everything that could write to the
// worktree must have ended. moved is false if no file was moved.
func (f *Filling) KeepMade(ctx context.Context, worktree, commit string) (moved bool, err error) {
	tracked, err := diff.List(ctx, f.h.Repo.Git(), commit)
	if err != nil {
		return false, err
	}
	made, err := listMade(worktree, tracked)
	if err != nil {
		return false, err
	}
	tree := filepath.Join(f.dir, treeFolder)
	err = os.Mkdir(tree, 0o700)
	for _, name := range made {
		from, to := filepath.Join(worktree, name), filepath.Join(tree, name)
		err = errors.Join(err, takeOwnership(from), os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(from, to))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(f.dir, madeFile), []byte(layer.Boot()+"\x00"+strings.Join(made, "\x00")), 0o600)
	}
	return true, err
}

// takeOwnership gives files to this process's user, like those of a checkout.
func takeOwnership(top string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(top, func(at string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(at, 0, os.Getegid()))
	})
}

// listMade lists the files and folders of a worktree that its commit does not have, but not those inside a listed folder.
func listMade(worktree string, tracked map[string]diff.Entry) (made []string, err error) {
	folders := map[string]bool{}
	for name := range tracked {
		for dir := path.Dir(name); dir != "." && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	links := map[uint64]uint64{} // names not yet seen of files with several names, by inode
	top := ""
	err = filepath.WalkDir(worktree, func(at string, e fs.DirEntry, err error) error {
		if err != nil || at == worktree {
			return err
		}
		name, err := filepath.Rel(worktree, at)
		_, known := tracked[name]
		switch {
		case err != nil:
			return err
		case top != "" && strings.HasPrefix(name, top+"/"):
		case name == ".git":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case known && e.IsDir(): // of a submodule
			if files, err := os.ReadDir(at); err != nil || len(files) > 0 {
				return errors.Join(err, errors.New("setup has put files into a submodule"))
			}
			return nil
		case known:
			return nil
		case folders[name] && e.IsDir():
			return nil
		default:
			if top = name; len(made) == maxMade {
				return fmt.Errorf("setup has put more than %d files and folders into the worktree", maxMade)
			}
			made = append(made, name)
		}
		if strings.EqualFold(e.Name(), ".git") {
			return errors.New("setup has made a repository")
		}
		return checkKeepable(e, links)
	})
	if len(links) > 0 && err == nil {
		err = errors.New("setup has made hard links to files of the worktree")
	}
	return made, err
}

// checkKeepable returns an error if a file cannot be kept. It counts the names of files with several names in links.
func checkKeepable(e fs.DirEntry, links map[uint64]uint64) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	if mode := info.Mode(); !mode.IsRegular() && !mode.IsDir() && mode.Type() != fs.ModeSymlink {
		return errors.New("setup has made a pipe, a socket or a device")
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && !info.IsDir() && st.Nlink > 1 {
		left, seen := links[st.Ino]
		if !seen {
			left = uint64(st.Nlink) //nolint:unconvert // smaller on some systems
		}
		if links[st.Ino] = left - 1; left == 1 {
			delete(links, st.Ino)
		}
	}
	return nil
}
