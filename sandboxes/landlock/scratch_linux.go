package landlock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/sandboxes"
)

// scratch is a sandbox's folder on the host, with HOME and TMPDIR, which commands can write, and the saved .git file of the
// worktree, which they cannot.
type scratch struct{ dir string }

// scratchPrefix returns the prefix of the names of a run's folders: the run id itself may be no valid folder name.
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
	if p.Assume { // another user must be able to pass through
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

// findScratch returns the scratch folders of a run. It ignores folders of other users: base may be writable for everybody.
func findScratch(base, run string) (found []*scratch, err error) {
	entries, err := os.ReadDir(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		info, err := os.Lstat(dir)
		if err != nil || !strings.HasPrefix(e.Name(), scratchPrefix(run)) || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Geteuid() {
			found = append(found, &scratch{dir})
		}
	}
	return found, nil
}

// redirectGitFile makes the worktree's .git file point to the private repository, after saving its content: without mounts the file
// cannot be covered.
func (s *scratch) redirectGitFile(worktree, gitDir string) error {
	if err := sandboxes.SaveGitFile(s.dir, worktree); err != nil {
		return err
	}
	return sandboxes.WriteGitFile(worktree, []byte("gitdir: "+gitDir+"\n"))
}

// remove restores the worktree's .git file and removes the folder. No command may run any more.
func (s *scratch) remove() error {
	if _, err := sandboxes.RestoreGitFile(s.dir); err != nil {
		return err
	}
	return disk.RemoveAll(s.dir)
}
