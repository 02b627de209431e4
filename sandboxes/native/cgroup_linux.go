package native

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Control groups bound what a sandbox uses of the machine. Which can be used differs: version 1 has one hierarchy a
// controller, version 2 one for all, of which a part must have been given to this user. A sandbox gets a group below the
// one ralph is in, or beside it, so that what bounds ralph bounds its sandboxes too.

// spare are processes and threads that a group allows beyond the limit, for the first process to go on working while
// the commands are at theirs.
const spare = 48

// places are the folders in which groups can be made, by controller: memory, cpu, pids.
type places map[string]folder

type folder struct {
	dir string
	v2  bool
}

func controllers() []string { return []string{"memory", "cpu", "pids"} }

// findPlaces tries out where this process may make groups that bound something.
func findPlaces() places {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	found := make(places)
	for controller, own := range parsePlaces(groups, mounts) {
		if controller != "" {
			if usable(own.dir, controllerFile(controller, false)) {
				found[controller] = own
			}
			continue
		}
		for _, c := range controllers() {
			if _, ok := found[c]; ok {
				continue
			}
			if dir := delegated(own.dir, c); dir != "" {
				found[c] = folder{dir: dir, v2: true}
			}
		}
	}
	return found
}

// parsePlaces says in which folder's group this process is, by controller; "" is version 2.
func parsePlaces(groups, mounts []byte) places {
	found := make(places)
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
			found[name] = folder{dir: filepath.Join(at, below), v2: name == ""}
		}
	}
	return found
}

// usable reports whether a group can be made in dir, and then has the file.
func usable(dir, file string) bool {
	trial, err := os.MkdirTemp(dir, "ralph-trial-")
	if err != nil {
		return false
	}
	defer func() { _ = unix.Rmdir(trial) }()
	return unix.Access(filepath.Join(trial, file), unix.W_OK) == nil
}

// delegated finds the nearest group above own whose groups are bound by the controller and may be made by us.
func delegated(own, controller string) string {
	for dir := filepath.Dir(own); strings.HasPrefix(dir, "/sys/fs/cgroup"); dir = filepath.Dir(dir) {
		on, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err != nil {
			return ""
		}
		if !slices.Contains(strings.Fields(string(on)), controller) {
			continue
		}
		// Moving a process needs the right to write here, even when it goes to a group below.
		if unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil {
			return ""
		}
		if usable(dir, controllerFile(controller, true)) {
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

// group is the control groups of one sandbox.
type group struct {
	dirs   []string
	held   map[string]bool // controllers that bound it
	events string          // the file that counts what the memory limit has cost; empty without one
}

// killed is how many processes the kernel has killed because the group had used up its memory.
func (g *group) killed() int {
	if g == nil || g.events == "" {
		return 0
	}
	text, err := os.ReadFile(g.events)
	if err != nil {
		return 0 // removed, or a kernel that does not count
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}

// groupPrefix begins the names of a run's groups. The id itself may not be fit for a folder's name.
func groupPrefix(run string) string {
	sum := sha256.Sum256([]byte(run))
	return "ralph-" + hex.EncodeToString(sum[:8]) + "-"
}

// makeGroup makes the groups of a sandbox, with its limits, and moves a process in. What cannot be held is left out.
func (p places) makeGroup(run string, l sandboxes.Limits, pid int) (*group, error) {
	name := groupPrefix(run) + strings.ToLower(rand.Text()[:8])
	g := &group{held: make(map[string]bool)}
	for _, c := range controllers() {
		at, ok := p[c]
		if !ok {
			continue
		}
		dir := filepath.Join(at.dir, name)
		if err := os.Mkdir(dir, 0o755); err == nil {
			g.dirs = append(g.dirs, dir)
		} else if !errors.Is(err, fs.ErrExist) {
			return g, fmt.Errorf("make a control group: %w", err)
		}
		if err := bound(dir, c, at.v2, l); err != nil {
			return g, fmt.Errorf("limit %s: %w", c, err)
		}
		if err := writeControl(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return g, fmt.Errorf("limit %s: %w", c, err)
		}
		g.held[c] = true
		if c == "memory" {
			g.events = filepath.Join(dir, "memory.oom_control")
			if at.v2 {
				g.events = filepath.Join(dir, "memory.events")
			}
		}
	}
	return g, nil
}

// bound writes a controller's limit.
func bound(dir, controller string, v2 bool, l sandboxes.Limits) error {
	const period = 100_000 // microseconds
	quota := max(int64(l.CPUs*period), 1000)
	file := controllerFile(controller, v2)
	switch {
	case controller == "memory":
		if err := writeControl(dir, file, strconv.FormatInt(l.Memory, 10)); err != nil {
			return err
		}
		if v2 { // absent on a machine without swap
			_ = writeControl(dir, "memory.swap.max", "0")
		} else {
			_ = writeControl(dir, "memory.memsw.limit_in_bytes", strconv.FormatInt(l.Memory, 10))
		}
		return nil
	case controller == "cpu" && v2:
		return writeControl(dir, file, fmt.Sprintf("%d %d", quota, period))
	case controller == "cpu":
		if err := writeControl(dir, "cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
			return err
		}
		return writeControl(dir, file, strconv.FormatInt(quota, 10))
	}
	return writeControl(dir, file, strconv.Itoa(l.PIDs+spare))
}

func writeControl(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// remove removes the groups, whose processes have ended.
func (g *group) remove(ctx context.Context) error {
	if g == nil {
		return nil
	}
	var all error
	for _, dir := range g.dirs {
		all = errors.Join(all, removeGroup(ctx, dir))
	}
	return all
}

// removeGroup removes one group. The kernel lets go of ended processes a moment after their end.
func removeGroup(ctx context.Context, dir string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("remove control group %s: %w", dir, context.Cause(ctx))
		}
	}
}

// reapGroups removes the groups that sandboxes of a run have left, wherever ralph was then.
func reapGroups(ctx context.Context, run string) error {
	prefix := groupPrefix(run)
	var all error
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // what cannot be read was not made by us
		}
		if strings.HasPrefix(entry.Name(), prefix) {
			all = errors.Join(all, removeGroup(ctx, path))
			return fs.SkipDir
		}
		return nil
	})
	return all
}
