package cgroup

import (
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

	"github.com/ralph-pool/ralph/internal/retry"
)

// Limits holds the limits of one sandbox's group.
type Limits struct {
	Memory int64 // bytes
	CPUs   float64
	PIDs   int // processes and threads; the group allows [Spare] more
}

// Spare is the number of processes and threads that a group allows beyond PIDs, so that the sandbox's supervisor can work
// while the commands are at their limit.
const Spare = 48

// Group is the set of control groups of one sandbox. A nil Group limits nothing.
type Group struct {
	dirs   []string
	limits map[string]bool // by controller
	events string          // file with the count of processes killed at the memory limit; empty without such a limit
	pids   string          // folder with the counts of processes; empty without a process limit
}

// Limits reports whether the group limits a controller.
func (g *Group) Limits(controller string) bool { return g != nil && g.limits[controller] }

// Dirs returns the group's folders, for [Enter].
func (g *Group) Dirs() []string {
	if g == nil {
		return nil
	}
	return slices.Clone(g.dirs)
}

// Killed returns how many processes the kernel has killed at the group's memory limit.
func (g *Group) Killed() int {
	if g == nil || g.events == "" {
		return 0
	}
	text, err := os.ReadFile(g.events)
	if err != nil {
		return 0 // removed, or a kernel without the counter
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}

// Processes returns the largest number of processes and threads that the group had at the same time, or the present number if the
// kernel does not record it. Without a process limit it returns 0.
func (g *Group) Processes() (most int) {
	if g == nil || g.pids == "" {
		return 0
	}
	most, kept := readNumber(g.pids, "pids.peak") // since Linux 6.1
	if !kept {
		most, _ = readNumber(g.pids, "pids.current")
	}
	return most
}

// Prefix returns the prefix of the names of a run's groups: the run id itself may be no valid folder name.
func Prefix(run string) string {
	sum := sha256.Sum256([]byte(run))
	return "ralph-" + hex.EncodeToString(sum[:8]) + "-"
}

// Make creates the groups of a sandbox, with the limits for which there is a place. After an error it still returns the
// groups made so far.
func (p Places) Make(run string, l Limits) (*Group, error) {
	name := Prefix(run) + strings.ToLower(rand.Text()[:8])
	g := &Group{limits: make(map[string]bool)}
	for _, c := range controllers() {
		at, ok := p[c]
		if !ok {
			continue
		}
		dir := filepath.Join(at.Dir, name)
		if err := os.Mkdir(dir, 0o755); err == nil {
			g.dirs = append(g.dirs, dir)
		} else if !errors.Is(err, fs.ErrExist) {
			return g, fmt.Errorf("make a control group: %w", err)
		}
		if err := writeLimit(dir, c, at.V2, l); err != nil {
			return g, fmt.Errorf("limit %s: %w", c, err)
		}
		g.limits[c] = true
		if c == "pids" {
			g.pids = dir
		}
		if c == "memory" {
			g.events = filepath.Join(dir, "memory.oom_control")
			if at.V2 {
				g.events = filepath.Join(dir, "memory.events")
			}
		}
	}
	return g, nil
}

// Enter moves a process with all its threads into groups.
func Enter(dirs []string, pid int) error {
	for _, dir := range dirs {
		if err := writeControl(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("enter control group: %w", err)
		}
	}
	return nil
}

// writeLimit writes a controller's limit.
func writeLimit(dir, controller string, v2 bool, l Limits) error {
	const period = 100_000 // microseconds
	quota := max(int64(l.CPUs*period), 1000)
	file := controllerFile(controller, v2)
	switch {
	case controller == "memory":
		if err := writeControl(dir, file, strconv.FormatInt(l.Memory, 10)); err != nil {
			return err
		}
		if v2 { // the file is missing on a machine without swap
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
	return writeControl(dir, file, strconv.Itoa(l.PIDs+Spare))
}

func writeControl(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Remove removes the groups. Their processes must have ended.
func (g *Group) Remove(ctx context.Context) error {
	if g == nil {
		return nil
	}
	var all error
	for _, dir := range g.dirs {
		all = errors.Join(all, removeGroup(ctx, dir))
	}
	return all
}

// removeGroup removes one group. It retries, because the kernel counts processes for a moment after their end.
func removeGroup(ctx context.Context, dir string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY):
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
		if err := retry.Sleep(ctx, pause); err != nil {
			return fmt.Errorf("remove control group %s: %w", dir, err)
		}
	}
}

// Reap removes all groups of a run's sandboxes, wherever in the hierarchy they are.
func Reap(ctx context.Context, run string) error {
	prefix := Prefix(run)
	var all error
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // ralph's own groups are readable
		}
		if strings.HasPrefix(entry.Name(), prefix) {
			all = errors.Join(all, removeGroup(ctx, path))
			return fs.SkipDir
		}
		return nil
	})
	return all
}
