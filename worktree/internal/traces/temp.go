package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/claim"
	"github.com/ralph-pool/ralph/worktree/internal/incoming"
	"github.com/ralph-pool/ralph/worktree/leftover"
)

// tempAge is the age at which temporary files are removed whose process cannot be checked: it is on another machine, or in
// a container that is gone.
const tempAge = 24 * time.Hour

// TempDir returns the folder for a process's temporary files in the state folder, which several machines may share.
func TempDir(state string, p claim.Process) string {
	return filepath.Join(state, "tmp", p.Host, fmt.Sprintf("%d.%s", p.PID, p.Started))
}

// MakeTempDir makes the folder for a process's temporary files. It removes the empty ones of ended processes of this machine: most
// processes, such as those that only look, leave nothing else.
func MakeTempDir(state string, p claim.Process) (string, error) {
	own := TempDir(state, p)
	for _, name := range entryNames(filepath.Dir(own)) {
		pid, started, _ := strings.Cut(name, ".")
		if n, err := strconv.Atoi(pid); err == nil && !proc.Alive(n, started) {
			_ = os.Remove(filepath.Join(filepath.Dir(own), name)) // fails unless it is empty
		}
	}
	return own, os.MkdirAll(own, 0o700)
}

// TempFolders lists temporary files of dead processes. It also updates the time of its own folder, which tells other
// machines that this process is alive.
func (s Scope) TempFolders() (all []leftover.Leftover) {
	own, now := TempDir(s.State, s.Self), time.Now()
	_, _ = os.MkdirAll(own, 0o700), os.Chtimes(own, now, now) // whoever needs the folder reports that it is missing
	for _, path := range s.deadTempDirs() {
		if len(entryNames(path)) > 0 {
			all = append(all, leftover.Leftover{Kind: leftover.Temp, Where: path, Safe: true, Remove: removeFunc(path)})
		}
	}
	for _, path := range incoming.Left(filepath.Join(s.Common, "objects")) {
		if s.isOld(path) { // a younger one may be about to be locked
			all = append(all, leftover.Leftover{Kind: leftover.Temp, Where: path, Safe: true, Remove: removeFunc(path)})
		}
	}
	return all
}

// deadTempDirs returns the folders of dead processes.
func (s Scope) deadTempDirs() (dirs []string) {
	root := filepath.Join(s.State, "tmp")
	for _, host := range entryNames(root) {
		for _, name := range entryNames(filepath.Join(root, host)) {
			path := filepath.Join(root, host, name)
			pid, started, _ := strings.Cut(name, ".")
			n, err := strconv.Atoi(pid)
			if host == s.Self.Host && (err != nil || !proc.Alive(n, started)) || host != s.Self.Host && isUnused(path) {
				dirs = append(dirs, path)
			}
		}
	}
	return dirs
}

// removeEmptyTemp removes the empty folders of dead processes, as most are, and those of machines that have none left.
func (s Scope) removeEmptyTemp() {
	for _, path := range s.deadTempDirs() {
		_ = os.Remove(path) // fails unless it is empty
	}
	root := filepath.Join(s.State, "tmp")
	for _, host := range entryNames(root) {
		if dir := filepath.Join(root, host); host != s.Self.Host && isOldTemp(dir) {
			_ = os.Remove(dir) // fails unless it is empty
		}
	}
}

// isUnused reports whether neither the folder of a process nor anything in it has changed for tempAge.
func isUnused(dir string) bool {
	if !isOldTemp(dir) {
		return false
	}
	for _, name := range entryNames(dir) {
		if !isOldTemp(filepath.Join(dir, name)) {
			return false
		}
	}
	return true
}

func isOldTemp(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > tempAge
}

// removedFolders lists the folders of removed worktrees that still exist. Every start begins to delete them.
func (s Scope) removedFolders() (all []leftover.Leftover) {
	root, detail := filepath.Join(s.State, "trash"), ""
	if s.Bin.Freeing() {
		detail = "it is being deleted"
	}
	for _, name := range entryNames(root) {
		path := filepath.Join(root, name)
		all = append(all, leftover.Leftover{Kind: leftover.Trash, Where: path, Detail: detail, Safe: true, Remove: removeFunc(path)})
	}
	return all
}

func entryNames(dir string) (list []string) {
	entries, _ := os.ReadDir(dir) // an unreadable folder has nothing to remove
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
