package sandboxes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/disk"
)

// Some providers cannot cover the worktree's .git file, so commands can replace it. Such a provider saves the file when it
// opens the sandbox, and restores it on Close or after a crash.

// savedGitFile is the name of the saved copy.
const savedGitFile = "git-file.json"

type gitFile struct {
	Worktree string `json:"worktree"`
	Content  []byte `json:"content"`
}

// SaveGitFile saves the worktree's .git file, which Spec.Check has validated, in a folder that no command can write to.
func SaveGitFile(folder, worktree string) error {
	content, err := os.ReadFile(filepath.Join(worktree, ".git"))
	if err != nil {
		return err
	}
	text, err := json.Marshal(gitFile{worktree, content})
	if err != nil {
		return err
	}
	if err := disk.WriteFile(filepath.Join(folder, savedGitFile), text, 0o600, disk.Process); err != nil {
		return fmt.Errorf("save the worktree's .git file: %w", err)
	}
	return nil
}

// RestoreGitFile restores the .git file that was saved in the folder, and reports whether it had changed. It does nothing
// if no file was saved or the worktree is gone. No command may run any more.
func RestoreGitFile(folder string) (changed bool, err error) {
	text, err := os.ReadFile(filepath.Join(folder, savedGitFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var f gitFile
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return false, fmt.Errorf("read the saved .git file: %w", err)
	}
	if err := disk.Unlock(f.Worktree); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(f.Worktree)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(".git"); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(f.Content)) {
		if now, err := root.ReadFile(".git"); err == nil && bytes.Equal(now, f.Content) {
			return false, nil
		}
	}
	return true, WriteGitFile(f.Worktree, f.Content)
}

// WriteGitFile replaces a worktree's .git file, owned by the worktree's owner. It does not follow links: a command may have
// created one there.
func WriteGitFile(worktree string, content []byte) error {
	if err := disk.Replace(worktree, ".git", content, 0o644); err != nil {
		return fmt.Errorf("write the worktree's .git file: %w", err)
	}
	return nil
}
