package claim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// leftFile returns the file of a run whose claim could not be left because the remote declined or did not answer. The file
// is in a folder that all clones of this host share. It says that the run's work waits here although its process is gone.
// The file's time is the end of the wait.

func (s *Store) leftFile(run string) string { return filepath.Join(s.left, git.Digest(run)) }

// isLeft reports whether the run waits on this host to be continued.
func (s *Store) isLeft(h Holder) bool {
	if left(h) || s.left == "" || h.Host != s.self.Host {
		return left(h)
	}
	info, err := os.Stat(s.leftFile(h.Run))
	return err == nil && s.now().Before(info.ModTime())
}

// leaveHere records that the run waits until the given time, and deletes the files of runs that no longer wait.
func (s *Store) leaveHere(run string, until time.Time) error {
	if s.left == "" {
		return nil
	}
	files, err := os.ReadDir(s.left)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(s.left, 0o700)
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil && s.now().After(info.ModTime()) {
			_ = os.Remove(filepath.Join(s.left, file.Name())) // expired, so a file that stays does no harm
		}
	}
	if err != nil {
		return err
	}
	return s.put(s.leftFile(run), "", until)
}

// put writes a file of this host's with a time, unless that is zero. Other processes see the complete file or none.
func (s *Store) put(path, content string, at time.Time) error {
	// The temporary file is outside of the folder: in it, another process could take a file whose time is not set yet for
	// an expired one.
	f, err := os.CreateTemp(filepath.Dir(s.left), "left-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close(), os.Chtimes(f.Name(), time.Time{}, at)); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// continues deletes the run's file: the run no longer waits.
func (s *Store) continues(run string) error {
	if s.left == "" {
		return nil
	}
	err := os.Remove(s.leftFile(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
