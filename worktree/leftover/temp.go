package leftover

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// tempAge is how old temporary files get whose process cannot be looked at.
const tempAge = 24 * time.Hour

// TempDir is the folder of a process's temporary files in the state folder, which several machines may share.
func TempDir(state string, p claim.Process) string {
	return filepath.Join(state, "tmp", p.Host, fmt.Sprintf("%d.%s", p.PID, p.Started))
}

// temp lists temporary files whose process is gone.
func (p Place) temp() (all []Leftover) {
	root := filepath.Join(p.State, "tmp")
	found := func(path string, safe bool) {
		if os.Remove(path) == nil { // it was empty, as most are
			return
		}
		all = append(all, Leftover{Kind: Temp, Where: path, Safe: safe, Remove: removing(path)})
	}
	for _, host := range names(root) {
		if host != p.Self.Host {
			if info, err := os.Lstat(filepath.Join(root, host)); err == nil && time.Since(info.ModTime()) > tempAge {
				found(filepath.Join(root, host), false) // nobody here can tell whether a process there is alive
			}
			continue
		}
		for _, name := range names(filepath.Join(root, host)) {
			pid, started, _ := strings.Cut(name, ".")
			if n, err := strconv.Atoi(pid); err != nil || !proc.Alive(n, started) {
				found(filepath.Join(root, host, name), true)
			}
		}
	}
	return all
}

// EmptyTrash deletes what a crash left of removed worktrees. failed is called with what stays.
func EmptyTrash(dir string, failed func(path string, err error)) {
	for _, name := range names(dir) {
		path := filepath.Join(dir, name)
		if err := disk.RemoveAll(path); err != nil {
			failed(path, err)
		}
	}
}

// trash lists the folders of removed worktrees that are still there: each start has tried to delete them before.
func (p Place) trash() (all []Leftover) {
	root := filepath.Join(p.State, "trash")
	for _, name := range names(root) {
		path := filepath.Join(root, name)
		all = append(all, Leftover{Kind: Trash, Where: path, Safe: true, Remove: removing(path)})
	}
	return all
}

func names(dir string) (list []string) {
	entries, _ := os.ReadDir(dir) // what cannot be read has nothing to remove
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}
