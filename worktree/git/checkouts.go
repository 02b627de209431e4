package git

import (
	"fmt"
	"path/filepath"
	"strings"
)

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// LockReason is the prefix of the lock reason of ralph's linked worktrees; it distinguishes them from the user's.
const LockReason = "ralph run "

// UserCheckouts returns the tops of the user's checkouts. It reads git's records, because git fails at an incomplete one.
func (g Runner) UserCheckouts() (tops []string) {
	if filepath.Base(g.common) == ".git" {
		tops = append(tops, filepath.Dir(g.common))
	}
	links, _ := filepath.Glob(filepath.Join(escapeGlob(g.common), "worktrees", "*", "gitdir")) // the pattern is valid
	for _, link := range links {
		locked, _ := ReadLinked(filepath.Join(filepath.Dir(link), "locked")) // most are not locked
		if top, err := LinkedTop(filepath.Dir(link)); err == nil && !strings.HasPrefix(string(locked), LockReason) {
			tops = append(tops, top)
		}
	}
	return tops
}

// LinkedTop returns the top of the linked worktree whose git directory is given, from git's record. It need not exist.
func LinkedTop(gitDir string) (string, error) {
	file, err := readLink(filepath.Join(gitDir, "gitdir"), "")
	if err != nil {
		return "", err
	}
	return filepath.Dir(file), nil
}

// LinkedGitDir returns the git directory that the .git file of a linked worktree names. An agent may have written that file.
func LinkedGitDir(top string) (string, error) { return readLink(filepath.Join(top, ".git"), "gitdir:") }

// readLink reads a path from a file. Since 2.48 git can write paths relative to the file's folder.
func readLink(file, prefix string) (string, error) {
	content, err := ReadLinked(file)
	path := strings.TrimSpace(strings.TrimPrefix(string(content), prefix))
	if err == nil && path == "" {
		err = fmt.Errorf("%s names no path", file)
	}
	if err != nil {
		return "", err
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	return Resolved(filepath.Join(filepath.Dir(file), path)), nil
}

// Resolved resolves the symbolic links in a path. Its last elements need not exist.
func Resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	last := strings.LastIndexByte(path, '/')
	if last <= 0 {
		return path
	}
	return filepath.Join(Resolved(path[:last]), path[last+1:])
}
