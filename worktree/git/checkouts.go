package git

import (
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
		file, err := ReadLinked(link)
		top := filepath.Dir(strings.TrimSuffix(string(file), "\n"))
		if err == nil && filepath.IsAbs(top) && !strings.HasPrefix(string(locked), LockReason) {
			tops = append(tops, top)
		}
	}
	return tops
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
