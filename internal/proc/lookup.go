package proc

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Lookup finds a program by name. A name with a slash is returned unchanged if it exists; a plain name is searched for in
// the absolute folders of env's PATH. Relative folders would let a repository choose the program.
func Lookup(name, dir string, env []string) (string, error) {
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
	for _, folder := range absoluteFolders(path) {
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

// noPrograms is a PATH without any folder. An empty PATH would mean the current folder.
const noPrograms = "/dev/null"

// absolutePath removes relative and empty folders from PATH. A child would search them relative to its current folder: in a
// worktree, that lets the repository choose the program.
func absolutePath(env []string) []string {
	out := slices.Clone(env)
	for i, e := range env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			out[i] = "PATH=" + cmp.Or(strings.Join(absoluteFolders(path), ":"), noPrograms)
		}
	}
	return out
}

func absoluteFolders(path string) []string {
	return slices.DeleteFunc(strings.Split(path, ":"), func(folder string) bool { return !filepath.IsAbs(folder) })
}

// pathOf returns the PATH of an environment that has no duplicates.
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
