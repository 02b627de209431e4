package cgroup

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Places maps a controller (memory, cpu, pids) to the folder in which its groups can be created.
type Places map[string]Folder

// Folder is a folder in which groups can be created.
type Folder struct {
	Dir string
	V2  bool // control groups version 2
}

func controllers() []string { return []string{"memory", "cpu", "pids"} }

// Find determines, by trying, where this process may create groups with limits.
func Find() Places {
	found := make(Places)
	for controller, own := range ownPlaces() {
		if controller != "" {
			if isWritable(own.Dir, controllerFile(controller, false)) {
				found[controller] = own
			}
			continue
		}
		for _, c := range controllers() {
			if _, ok := found[c]; ok {
				continue
			}
			if dir := delegated(own.Dir, c); dir != "" {
				found[c] = Folder{Dir: dir, V2: true}
			}
		}
	}
	return found
}

func ownPlaces() Places {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return parsePlaces(groups, mounts)
}

// parsePlaces returns the folder of this process's group by controller; "" is version 2.
func parsePlaces(groups, mounts []byte) Places {
	found := make(Places)
	paths := make(map[string]string)
	for line := range bytes.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(f) == 3 {
			for name := range strings.SplitSeq(f[1], ",") {
				paths[name] = f[2]
			}
		}
	}
	for line := range bytes.Lines(mounts) {
		left, right, ok := strings.Cut(strings.TrimSpace(string(line)), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 3 {
			continue
		}
		root, at := l[3], l[4]
		names := []string{""}
		switch r[0] {
		case "cgroup2":
		case "cgroup":
			names = strings.Split(r[2], ",")
		default:
			continue
		}
		for _, name := range names {
			path, in := paths[name]
			if !in || name != "" && !slices.Contains(controllers(), name) {
				continue
			}
			below, err := filepath.Rel(root, path)
			if err != nil || below == ".." || strings.HasPrefix(below, "../") {
				continue
			}
			found[name] = Folder{Dir: filepath.Join(at, below), V2: name == ""}
		}
	}
	return found
}

// isWritable reports whether a group created in dir has the file, writable.
func isWritable(dir, file string) bool {
	probe, err := os.MkdirTemp(dir, "ralph-probe-")
	if err != nil {
		return false
	}
	defer func() { _ = unix.Rmdir(probe) }()
	return unix.Access(filepath.Join(probe, file), unix.W_OK) == nil
}

// delegated returns the nearest ancestor of own in which this process may create groups limited by the controller.
func delegated(own, controller string) string {
	for dir := filepath.Dir(own); strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
		on, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return ""
		}
		if !slices.Contains(strings.Fields(string(on)), controller) {
			continue
		}
		// Moving a process needs write access here, even when it moves to a group below.
		if unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil {
			return ""
		}
		if isWritable(dir, controllerFile(controller, true)) {
			return dir
		}
	}
	return ""
}

// controllerFile is the file that holds a controller's limit.
func controllerFile(controller string, v2 bool) string {
	switch {
	case controller == "memory" && v2:
		return "memory.max"
	case controller == "memory":
		return "memory.limit_in_bytes"
	case controller == "cpu" && v2:
		return "cpu.max"
	case controller == "cpu":
		return "cpu.cfs_quota_us"
	}
	return "pids.max"
}
