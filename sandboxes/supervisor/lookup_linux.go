package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Lookup finds the program that name means: a path as it is, a plain name in the PATH of env. Relative folders in PATH
// are skipped: in a worktree they would let the repository choose the program.
func Lookup(name string, env []string) (string, error) {
	if name == "" {
		return "", errors.New("no program is named")
	}
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	var refused string
	for folder := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(folder) {
			continue
		}
		file := filepath.Join(folder, name)
		var st unix.Stat_t
		if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		refused = file
	}
	if refused != "" {
		return "", fmt.Errorf("%s: %w", refused, fs.ErrPermission)
	}
	return "", fmt.Errorf("%w in the sandbox (PATH is %s)", exec.ErrNotFound, path)
}

// Explain says in words why the system would not start the program at path in dir.
func Explain(err error, path, dir string) error {
	exists := func(p string) bool { _, err := os.Stat(p); return err == nil }
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, full)
	}
	switch {
	case errors.Is(err, unix.E2BIG):
		return fmt.Errorf("%w; long text belongs on its standard input", err)
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("the sandbox is at its limit of processes: %w", err)
	case !exists(dir):
		return fmt.Errorf("its folder %s: %w", dir, err)
	case errors.Is(err, unix.ENOENT) && exists(full):
		return fmt.Errorf("%s: its interpreter (the first line) is not in the sandbox: %w", path, err)
	case errors.Is(err, unix.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine, nor a script with a #! line: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
