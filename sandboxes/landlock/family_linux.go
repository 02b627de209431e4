package landlock

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ralph-pool/ralph/sandboxes/native"
)

// family lists the processes that come from one, parents first, without looking at any other. Those are among them that
// have ended and that nobody has waited for. While children end, some of their siblings may be left out.
func family(pid int) (pids []int, err error) {
	seen := map[int]bool{pid: true}
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		found, err := children(next[0])
		if err != nil && next[0] == pid { // a kernel that keeps no such list
			return native.Descendants(pid)
		}
		for _, child := range found {
			if !seen[child] {
				seen[child] = true
				pids, next = append(pids, child), append(next, child)
			}
		}
	}
	return pids, nil
}

// children lists the children of a process, which the kernel keeps by the thread that started them.
func children(pid int) (pids []int, err error) {
	dir := procFile(pid, "task")
	threads, err := names(dir)
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		text, err := os.ReadFile(filepath.Join(dir, thread, "children"))
		if err != nil {
			if _, gone := os.Stat(filepath.Join(dir, thread)); errors.Is(gone, fs.ErrNotExist) {
				continue
			}
			return nil, err
		}
		for field := range bytes.FieldsSeq(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids, nil
}

// names lists a folder.
func names(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}
