package landlock

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
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// plan is all that a command's helper needs to know of the sandbox.
type plan struct {
	Run      string
	UID, GID int
	Assume   bool // the command has to become this user
	Worktree string
	Read     []string // files and folders, without links in their paths
	Write    []string // the same
	Egress   string

	Memory int64
	PIDs   int
	Disk   int64

	Groups []string // control groups that commands are in
	// Watch are the limits that have to be held by looking, because no control group does.
	WatchMemory bool
	WatchPIDs   bool
}

// newPlan checks a spec and says what it comes to on this host.
func (p *Provider) newPlan(spec sandboxes.Spec) (*plan, error) {
	if spec.Run == "" {
		return nil, errors.New("the run has no id")
	}
	if strings.ContainsRune(spec.Run, 0) {
		return nil, errors.New("the run's id contains a NUL byte")
	}
	out := &plan{
		Run: spec.Run, UID: os.Getuid(), GID: os.Getgid(), Worktree: filepath.Clean(spec.Worktree),
		Memory: cmp.Or(spec.Limits.Memory, 4<<30), PIDs: cmp.Or(spec.Limits.PIDs, 1024), Disk: cmp.Or(spec.Limits.Disk, 2<<30),
	}
	for _, path := range slices.Concat(native.SystemPaths(p.show), settings()) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			out.Read = append(out.Read, real)
		}
	}
	if err := out.addSpec(spec); err != nil {
		return nil, err
	}
	return out, out.identify()
}

// settings are the files of /etc that say who and where one is. They are the host's own: no other can be put over them.
func settings() []string {
	return []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/nsswitch.conf", "/etc/resolv.conf"}
}

// identify says who commands are: the user itself or, when that is root, the worktree's owner. Never root: no limit of
// the kernel's on processes holds it, and a look now and then does not overtake a fork bomb.
func (p *plan) identify() error {
	if p.UID != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(p.Worktree, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: p.Worktree, Err: err}
	}
	if st.Uid == 0 {
		return fmt.Errorf("nothing bounds root's processes here, and %s is root's: run ralph as another user, or choose --sandbox native, docker or podman",
			p.Worktree)
	}
	p.UID, p.GID, p.Assume = int(st.Uid), int(st.Gid), true
	return nil
}

// addSpec adds what the spec shows, and refuses what would open the sandbox or cannot be done.
func (p *plan) addSpec(spec sandboxes.Spec) error {
	if err := p.addFolder("worktree", spec.Worktree, &p.Write); err != nil {
		return err
	}
	if spec.GitDir != "" {
		if err := p.addFolder("private repository", spec.GitDir, &p.Write); err != nil {
			return err
		}
		if info, err := os.Lstat(filepath.Join(spec.Worktree, ".git")); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("worktree %s has no .git file: it is not a linked worktree", spec.Worktree)
		}
	}
	for _, dir := range spec.Objects {
		if err := p.addFolder("object folder", dir, &p.Read); err != nil {
			return err
		}
		if err := p.keepReadOnly(dir); err != nil {
			return err
		}
	}
	for _, m := range spec.Mounts {
		if err := p.addMount(m); err != nil {
			return err
		}
	}
	if spec.Egress != "" {
		if info, err := os.Stat(spec.Egress); err != nil {
			return fmt.Errorf("egress socket: %w", err)
		} else if info.Mode()&fs.ModeSocket == 0 {
			return fmt.Errorf("egress socket %s is not a socket", spec.Egress)
		}
		p.Egress = spec.Egress
	}
	return nil
}

func (p *plan) addFolder(what, path string, to *[]string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s %q is not an absolute path", what, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return fmt.Errorf("%s %s is not a folder", what, path)
	}
	if reserved(real) {
		return fmt.Errorf("%s %s is in a place of the system's", what, path)
	}
	*to = append(*to, real)
	return nil
}

// addMount shows what the user asks for, which can only be seen where it is.
func (p *plan) addMount(m sandboxes.Mount) error {
	if filepath.Clean(m.Host) != filepath.Clean(m.Inside) {
		return fmt.Errorf("mount %q at %q: %w: landlock shows a file only at its own absolute path; leave inside= out",
			m.Host, m.Inside, sandboxes.ErrUnsupported)
	}
	real, _, err := m.Source()
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Host, err)
	}
	if m.ReadOnly {
		p.Read = append(p.Read, real)
		return p.keepReadOnly(real)
	}
	p.Write = append(p.Write, real)
	return nil
}

// keepReadOnly refuses what cannot be kept from being written: a rule only ever adds a right.
func (p *plan) keepReadOnly(path string) error {
	if slices.ContainsFunc(p.Write, func(dir string) bool { return within(path, dir) }) {
		return fmt.Errorf("show %s: %w: landlock cannot keep it read-only within a folder that may be written", path, sandboxes.ErrUnsupported)
	}
	return nil
}

// reserved reports whether a path is the root or belongs to the kernel's file systems.
func reserved(path string) bool {
	return path == "/" || within(path, "/proc") || within(path, "/sys") || within(path, "/dev")
}

// within reports whether path is dir or below it; both are clean.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func (p *plan) mayWrite(path string) bool {
	return slices.ContainsFunc(p.Write, func(dir string) bool { return within(path, dir) })
}

func (p *plan) mayRead(path string) bool {
	return p.mayWrite(path) || slices.ContainsFunc(p.Read, func(dir string) bool { return within(path, dir) })
}

// defaultPath is where every sandbox has programs.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// path is the host's PATH less what may not be read or may be written, and the system's own.
func (p *plan) path(host string) string {
	own := strings.Split(defaultPath, ":")
	var dirs []string
	for _, dir := range strings.Split(host+":"+defaultPath, ":") {
		real, err := filepath.EvalSymlinks(dir)
		seen := err == nil && filepath.IsAbs(dir) && p.mayRead(real) && !p.mayWrite(real)
		if (seen || slices.Contains(own, dir)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// baseEnv is what every command starts from; but for places in PATH nothing of it is the host's. Git must not look for
// the system's settings, which it cannot read: it would refuse to work.
func baseEnv(path string, room *scratch) []string {
	return []string{
		"PATH=" + path, "HOME=" + room.home(), "TMPDIR=" + room.temp(), "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh",
		"LANG=C.UTF-8", "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1",
	}
}
