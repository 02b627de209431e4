package native

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

// insideID is the user inside when ralph runs as root: agents refuse to run as root.
const insideID = 1000

// plan is all that the first process needs to know. Its opens come from the host's view of the files.
type plan struct {
	Run      string
	UID      int
	GID      int
	Assume   bool // the first process starts as another user and becomes this one
	Worktree string
	GitDir   string
	Shown    []shown // in the order in which they are mounted
	Egress   string
	// EgressGiven is the place, from 1, of the socket's mount among the files that come with the plan.
	EgressGiven int

	Memory int64
	PIDs   int
	Disk   int64
	// Watch are the limits that the first process has to hold by looking, because no control group does.
	WatchMemory bool
	WatchPIDs   bool
}

// shown is one host file or folder that is seen inside.
type shown struct {
	Host   string
	Inside string
	Write  bool
	File   bool
	// Given is the place, from 1, of its mount among the files that come with the plan; 0: the first process opens Host.
	Given int

	system bool // part of the host's system, the same for all users
	common bool // seen as any other user of the host sees it, unless that is not at all
}

// newPlan checks a spec and says what it comes to on this host.
func (p *Provider) newPlan(spec sandboxes.Spec) (*plan, error) {
	if spec.Run == "" {
		return nil, errors.New("the run has no id")
	}
	if strings.ContainsRune(spec.Run, 0) {
		return nil, errors.New("the run's id contains a NUL byte")
	}
	l := withDefaults(spec.Limits)
	out := &plan{
		Run: spec.Run, UID: os.Getuid(), GID: os.Getgid(), Worktree: spec.Worktree, GitDir: spec.GitDir,
		Memory: l.Memory, PIDs: l.PIDs, Disk: l.Disk,
	}
	if out.UID == 0 {
		out.UID, out.GID = insideID, insideID
	}
	out.Shown = system(p.show)
	if err := out.addSpec(spec); err != nil {
		return nil, err
	}
	return out, nil
}

// withDefaults fills in the limits that a spec leaves open.
func withDefaults(l sandboxes.Limits) sandboxes.Limits {
	return sandboxes.Limits{
		Memory: cmp.Or(l.Memory, 4<<30), CPUs: cmp.Or(l.CPUs, 2), PIDs: cmp.Or(l.PIDs, 1024), Disk: cmp.Or(l.Disk, 2<<30),
	}
}

// addSpec adds what the spec shows, and refuses what would open the sandbox.
func (p *plan) addSpec(spec sandboxes.Spec) error {
	if err := p.addFolder("worktree", spec.Worktree, true); err != nil {
		return err
	}
	if spec.GitDir != "" {
		if err := p.addFolder("private repository", spec.GitDir, true); err != nil {
			return err
		}
		if info, err := os.Lstat(filepath.Join(spec.Worktree, ".git")); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("worktree %s has no .git file: it is not a linked worktree", spec.Worktree)
		}
	}
	for _, dir := range spec.Objects {
		if err := p.addFolder("object folder", dir, false); err != nil {
			return err
		}
	}
	for _, m := range spec.Mounts {
		if err := p.addMount(m); err != nil {
			return err
		}
	}
	if spec.Egress != "" {
		info, err := os.Stat(spec.Egress)
		if err != nil {
			return fmt.Errorf("egress socket: %w", err)
		}
		if info.Mode()&fs.ModeSocket == 0 {
			return fmt.Errorf("egress socket %s is not a socket", spec.Egress)
		}
		p.Egress = spec.Egress
	}
	// A folder comes before what is shown below it.
	slices.SortStableFunc(p.Shown, func(a, b shown) int {
		return cmp.Compare(strings.Count(a.Inside, "/"), strings.Count(b.Inside, "/"))
	})
	return nil
}

// addFolder shows a folder at its own path.
func (p *plan) addFolder(what, path string, write bool) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s %q is not an absolute path", what, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s %s is not a folder", what, path)
	}
	path = filepath.Clean(path)
	if reserved(path) {
		return fmt.Errorf("%s %s is in a place that the sandbox needs for itself", what, path)
	}
	p.Shown = append(p.Shown, shown{Host: path, Inside: path, Write: write})
	return nil
}

// addMount shows what the user asks for.
func (p *plan) addMount(m sandboxes.Mount) error {
	host, info, err := m.Source()
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Host, err)
	}
	if !filepath.IsAbs(m.Inside) {
		return fmt.Errorf("mount %s: %q is not an absolute path inside", m.Host, m.Inside)
	}
	inside := filepath.Clean(m.Inside)
	if reserved(inside) {
		return fmt.Errorf("mount %s: the sandbox needs %s for itself; choose another place", m.Host, inside)
	}
	p.Shown = append(p.Shown, shown{Host: host, Inside: inside, Write: !m.ReadOnly, File: !info.IsDir()})
	return nil
}

// reserved reports whether a path is the root or belongs to the kernel's file systems.
func reserved(path string) bool {
	return path == "/" || within(path, "/proc") || within(path, "/sys") || within(path, "/dev")
}

// within reports whether path is dir or below it; both are clean.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// owner returns who owns a file on the host.
func owner(path string) (uid, gid int, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return int(st.Uid), int(st.Gid), nil
}
