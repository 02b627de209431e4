package leftover

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
)

// MoveAside moves folders to a new one, each to the name it has in the map. Nothing there is a git directory to git any more: a
// look with git would run what the agent has put into its configuration.
func MoveAside(to string, folders map[string]string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for name, from := range folders {
		if err := os.Rename(from, filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return disk.OpenFolders(to, Hide)
}

// Hide renames the entry of a folder if it makes the folder a repository to git, which would run what an agent has
// configured there: .git, or the HEAD of a bare repository. In the worst case the name stays.
func Hide(folder *os.Root, name string) {
	_, bare := folder.Lstat("objects")
	_, split := folder.Lstat("commondir") // its objects are elsewhere
	if strings.EqualFold(name, ".git") || strings.EqualFold(name, "HEAD") && (bare == nil || split == nil) {
		_ = folder.Rename(name, "git-"+strings.Trim(name, ".")+"-"+rand.Text())
	}
}
