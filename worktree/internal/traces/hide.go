package traces

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
)

// MoveAside moves folders, pairs of a new name and the path, into a new folder, one after the other. It renames .git entries,
// so that git finds no repository there: a git command in it would run programs that the agent has configured.
func MoveAside(to string, folders ...[2]string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, f := range folders {
		name, from := f[0], f[1]
		_ = disk.Unlock(from) // without write permission its ".." cannot change
		if err := os.Rename(from, filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return disk.OpenFolders(to, Hide)
}

// Hide renames a folder's entry if it makes git take the folder for a repository, where git would run programs that an
// agent has configured: .git, or the HEAD of a bare repository. If renaming fails, the name stays.
func Hide(folder *os.Root, name string) {
	_, bare := folder.Lstat("objects")
	_, split := folder.Lstat("commondir") // set if the objects are elsewhere
	if strings.EqualFold(name, ".git") || strings.EqualFold(name, "HEAD") && (bare == nil || split == nil) {
		_ = folder.Rename(name, "git-"+strings.Trim(name, ".")+"-"+rand.Text())
	}
}
