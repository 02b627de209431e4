package sandboxes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Check returns an error if the spec is invalid for every provider. Every provider calls it.
func (s Spec) Check() error {
	switch {
	case s.Run == "":
		return errors.New("the run has no id")
	case strings.ContainsAny(s.Run, "\n\x00"):
		return fmt.Errorf("%q is not a run id", s.Run)
	case s.Limits.Memory < 0:
		return errors.New("the limit of memory is negative")
	case s.Limits.CPUs < 0:
		return errors.New("the limit of CPUs is negative")
	case s.Limits.PIDs < 0:
		return errors.New("the limit of PIDs is negative")
	case s.Limits.Disk < 0:
		return errors.New("the limit of disk is negative")
	}
	folders := [][2]string{
		{"worktree", s.Worktree}, {"private repository", s.GitDir}, {"lower folder", s.Lower},
		{"folder of setup", s.Setup}, {"home", s.Home},
	}
	for _, dir := range s.Objects {
		folders = append(folders, [2]string{"object folder", dir})
	}
	for i, f := range folders {
		if i > 0 && f[1] == "" {
			continue
		}
		if err := checkFolder(f[0], f[1]); err != nil {
			return err
		}
	}
	if s.GitDir != "" {
		info, err := os.Lstat(filepath.Join(s.Worktree, ".git"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("worktree: %w", err)
		}
		if err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("worktree %s has no .git file: it is not a linked worktree", s.Worktree)
		}
	}
	if s.Egress == "" {
		return nil
	}
	info, err := os.Stat(s.Egress)
	if err != nil {
		return fmt.Errorf("egress socket: %w", err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("egress socket %s is not a socket", s.Egress)
	}
	return nil
}

func checkFolder(name, path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%s %q is not a clean absolute path", name, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s %s is not a folder", name, path)
	}
	return nil
}
