package landlock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ralph-pool/ralph/internal/disk"
)

// scratch is a sandbox's folder on the host: HOME and TMPDIR, which commands may write, and a note, which they may not,
// about the file to restore at the end.
type scratch struct{ dir string }

// note is the file to restore.
type note struct {
	Worktree string `json:"worktree"`
	GitFile  []byte `json:"git_file"` // the content of the worktree's .git file
}

// scratchPrefix begins the names of a run's folders. The id itself may not be fit for a folder's name.
func scratchPrefix(run string) string {
	sum := sha256.Sum256([]byte(run))
	return "ralph-landlock-" + hex.EncodeToString(sum[:8]) + "-"
}

func makeScratch(base string, p *plan) (*scratch, error) {
	if err := os.MkdirAll(base, 0o711); err != nil {
		return nil, fmt.Errorf("make scratch space: %w", err)
	}
	dir, err := os.MkdirTemp(base, scratchPrefix(p.Run))
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("make scratch space: %w", err)
	}
	s := &scratch{dir}
	mode := fs.FileMode(0o700)
	if p.Assume { // another user has to come through
		mode = 0o711
	}
	err = os.Chmod(dir, mode)
	for _, part := range []string{s.home(), s.temp()} {
		err = errors.Join(err, os.Mkdir(part, 0o700))
		if p.Assume {
			err = errors.Join(err, os.Lchown(part, p.UID, p.GID))
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make scratch space: %w", err), os.RemoveAll(dir))
	}
	return s, nil
}

func (s *scratch) home() string { return filepath.Join(s.dir, "home") }
func (s *scratch) temp() string { return filepath.Join(s.dir, "tmp") }
func (s *scratch) note() string { return filepath.Join(s.dir, "note.json") }

// findScratch finds the folders of a run. In a folder that everybody may write to, only this user's own count.
func findScratch(base, run string) (found []*scratch, err error) {
	dirs, err := filepath.Glob(filepath.Join(base, scratchPrefix(run)+"*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() {
			found = append(found, &scratch{dir})
		}
	}
	return found, nil
}

// point makes the worktree's .git file name the private repository, and notes its content: without mounts it cannot be
// covered.
func (s *scratch) point(worktree, gitDir string) error {
	path := filepath.Join(worktree, ".git")
	held, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the worktree's .git file: %w", err)
	}
	text, err := json.Marshal(note{Worktree: worktree, GitFile: held})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.note(), text, 0o600); err != nil {
		return fmt.Errorf("note the worktree's .git file: %w", err)
	}
	return replaceFile(worktree, []byte("gitdir: "+gitDir+"\n"))
}

// replaceFile gives a worktree a new .git file, whatever a command has put there.
func replaceFile(worktree string, content []byte) error {
	root, err := os.OpenRoot(worktree)
	if err != nil {
		return fmt.Errorf("write the worktree's .git file: %w", err)
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(".")
	if err == nil {
		err = disk.RemoveAll(filepath.Join(worktree, ".git"))
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(".git", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the worktree's .git file: %w", err)
	}
	_, err = f.Write(content)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(int(st.Uid), int(st.Gid)))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the worktree's .git file: %w", err)
	}
	return nil
}

// remove restores the noted file and removes the folder. No command may run any more.
func (s *scratch) remove() error {
	text, err := os.ReadFile(s.note())
	var n note
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &n); err != nil {
			return fmt.Errorf("read %s: %w", s.note(), err)
		}
		if _, err := os.Lstat(n.Worktree); err == nil {
			if err := replaceFile(n.Worktree, n.GitFile); err != nil {
				return err
			}
		}
	}
	return disk.RemoveAll(s.dir)
}
