package disk

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// mostEnvironment bounds the bytes read of a process's environment or arguments.
const mostEnvironment = 1 << 20

// heldByProcesses counts the deleted files on the file system of place that a writer's processes still hold open: they are in no
// folder, but use space until the last of these processes ends. A writer's processes are those with one of the marks as an
// argument or in the environment, and all in the same PID namespace as one of them, unless that is this process's own
// namespace: a process of a sandbox can remove the mark, but not leave the namespace.
func heldByProcesses(ctx context.Context, place string, marks []string) Amount {
	device, err := filesystem(place)
	var size unix.Statfs_t
	if err != nil || unix.Statfs(place, &size) != nil {
		return Amount{}
	}
	procs, err := os.ReadDir("/proc")
	if err != nil || len(marks) == 0 {
		return Amount{}
	}
	self, _ := os.Readlink("/proc/self/ns/pid")
	spaces := map[string][]string{} // processes by PID namespace
	theirs := map[string]bool{}     // processes with a mark
	for _, p := range procs {
		if _, err := strconv.Atoi(p.Name()); err != nil || ctx.Err() != nil {
			continue
		}
		dir := filepath.Join("/proc", p.Name())
		space, err := os.Readlink(filepath.Join(dir, "ns", "pid"))
		if err != nil {
			continue // ended, or not readable for us
		}
		spaces[space] = append(spaces[space], dir)
		theirs[dir] = marked(filepath.Join(dir, "environ"), marks) || marked(filepath.Join(dir, "cmdline"), marks)
	}
	m := deletedFiles{measure{device: device, seen: map[uint64]bool{}}, size.Blocks}
	for space, dirs := range spaces {
		whole := space != self && slices.ContainsFunc(dirs, func(dir string) bool { return theirs[dir] })
		for _, dir := range dirs {
			if whole || theirs[dir] {
				m.countProcess(ctx, dir)
			}
		}
	}
	m.Cut = ctx.Err() != nil
	return m.Amount
}

// marked reports whether an environment or a command line contains one of the marks.
func marked(path string, marks []string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	env, err := io.ReadAll(io.LimitReader(f, mostEnvironment))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if slices.Contains(marks, string(entry)) {
			return true
		}
	}
	return false
}

// deletedFiles counts deleted files.
type deletedFiles struct {
	measure
	blocks uint64 // blocks of the file system
}

// countProcess counts the deleted files that a process holds open. Each thread may have a file table of its own. Only root can
// see mapped files.
func (m *deletedFiles) countProcess(ctx context.Context, dir string) {
	folders, _ := filepath.Glob(filepath.Join(dir, "task", "*", "fd")) // the pattern is valid
	for _, folder := range append(folders, filepath.Join(dir, "map_files")) {
		files, err := os.Open(folder)
		if err != nil {
			continue
		}
		for err == nil && ctx.Err() == nil {
			var names []string
			names, err = files.Readdirnames(nameBatch)
			for _, name := range names {
				// Stat follows the kernel's link to the open file itself, regardless of its name, and opens nothing.
				path := filepath.Join(folder, name)
				if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && linksOf(info) == 0 {
					m.countFile(path, info)
				}
			}
		}
		_ = files.Close()
	}
}

// countFile counts a file on the file system, or on an overlay that writes there: it has another device, but the same size.
func (m *deletedFiles) countFile(path string, info os.FileInfo) {
	own := m.device
	defer func() { m.device = own }()
	var st unix.Statfs_t
	if deviceOf(info) != own && unix.Statfs(path, &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC && st.Blocks == m.blocks {
		m.device = deviceOf(info)
	}
	m.countOnce(info)
}
