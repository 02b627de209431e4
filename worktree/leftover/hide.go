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

// ErrKept says that removing would destroy commits or changes that are not imported.
var ErrKept = errors.New("not imported")

// AsideError is the end of a worktree whose work cannot be imported: its files have a new place. It is an [ErrKept].
type AsideError struct {
	Why  string // the last import failed
	Dir  string // which ralph never deletes
	Over string // the commit from which the files there differ; empty: they are all there
}

func (e *AsideError) Error() string { return ErrKept.Error() + ": " + e.Why + "; " + e.Files() }

func (e *AsideError) Unwrap() error { return ErrKept }

// Files says where they are.
func (e *AsideError) Files() string {
	if e.Over != "" {
		return "its files that differ from " + e.Over + " are in " + e.Dir
	}
	return "its files are in " + e.Dir
}

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
