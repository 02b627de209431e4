package proc

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lookup finds the program that name means: a path as it is, a plain name in the PATH of env. Relative folders in PATH
// are passed over: in a worktree they would let the repository choose the program.
func lookup(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !exists(name, dir) && (dir == "" || isDir(dir)) {
			return "", fs.ErrNotExist
		}
		return name, nil
	}
	path, ok := pathOf(env)
	if !ok {
		return "", fmt.Errorf("%w: its environment has no PATH", exec.ErrNotFound)
	}
	var refused string
	for folder := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(folder) {
			continue
		}
		file := folder + "/" + name
		var st unix.Stat_t
		if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if st.Mode&0o111 != 0 && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		if refused == "" {
			refused = file
		}
	}
	if refused != "" {
		return "", fmt.Errorf("%s: %w", refused, fs.ErrPermission)
	}
	return "", fmt.Errorf("%w (PATH is %s)", exec.ErrNotFound, path)
}

// pathOf returns the PATH of an environment without duplicates.
func pathOf(env []string) (string, bool) {
	for _, e := range env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			return path, true
		}
	}
	return "", false
}

func exists(path, dir string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	_, err := os.Stat(path)
	return err == nil
}
