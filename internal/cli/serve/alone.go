package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/filelock"
	"github.com/ralph-pool/ralph/worktree/git"
)

// alone locks what this service works, the list of projects or the only repository, within the folder of ralph's state. It fails
// if another service of this machine holds the lock. Without a folder to write in, the service works all the same.
func (s *serving) alone() (release func(), err error) {
	what := s.file
	if what == "" {
		if what, err = s.Top(s.cmd.Context()); err != nil {
			return nil, err
		}
	}
	what = git.Resolved(what)
	sum := sha256.Sum256([]byte(what))
	f, err := s.lockFile(hex.EncodeToString(sum[:8]))
	locked := false
	if err == nil {
		locked, err = filelock.Try(f)
	}
	release = func() { _ = f.Close() }
	switch {
	case err != nil:
		s.log.Warn("not known whether another service works the same projects", "error", err)
		return release, nil
	case !locked:
		release()
		return nil, &exit.Error{
			Status: exit.Usage,
			Err:    fmt.Errorf("another ralph serve of this machine works %s already, with the state folder %s", what, s.state),
			Hint:   "wait until it has ended, or stop it first",
		}
	}
	return release, nil
}

func (s *serving) lockFile(name string) (*os.File, error) {
	dir := filepath.Join(s.state, "services")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
}
