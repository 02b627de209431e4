package claim

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/worktree/git"
)

// waitFile returns the file of a run whose claim could not be left because the remote declined or did not answer. The file
// is in a folder that all clones of this host share. It says that the run's work waits here although its process is gone.
// The file's time is the end of the wait.

func (s *Store) waitFile(run string) string { return filepath.Join(s.waitDir, git.Digest(run)) }

// isWaiting reports whether the run waits on this host to be continued.
func (s *Store) isWaiting(h Holder) bool {
	if hasNoProcess(h) || s.waitDir == "" || h.Host != s.self.Host {
		return hasNoProcess(h)
	}
	info, err := os.Stat(s.waitFile(h.Run))
	return err == nil && s.now().Before(info.ModTime())
}

// recordWait records that the run waits until the given time, and deletes the files of runs that no longer wait.
func (s *Store) recordWait(run string, until time.Time) error {
	if s.waitDir == "" {
		return nil
	}
	files, err := os.ReadDir(s.waitDir)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Mkdir(s.waitDir, 0o700) // if the state folder above it is gone, so is the run's journal
	}
	for _, file := range files {
		if info, err := file.Info(); err == nil && s.now().After(info.ModTime()) {
			_ = os.Remove(filepath.Join(s.waitDir, file.Name())) // expired, so a file that stays does no harm
		}
	}
	if err != nil {
		return err
	}
	return s.writeFile(s.waitFile(run), "", until)
}

// writeFile writes a file of this host's with a time, unless that is zero. Other processes see the complete file or none.
func (s *Store) writeFile(path, content string, at time.Time) error {
	// The temporary file is outside of the folder: in it, another process could take a file whose time is not set yet for
	// an expired one.
	temp, err := disk.WriteTemp(filepath.Dir(s.waitDir), []byte(content), 0o600, disk.Process)
	if err != nil {
		return err
	}
	if err := os.Chtimes(temp, time.Time{}, at); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return disk.Install(temp, path, disk.Process)
}

// endWait deletes the run's file: the run no longer waits.
func (s *Store) endWait(run string) error {
	if s.waitDir == "" {
		return nil
	}
	err := os.Remove(s.waitFile(run))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
