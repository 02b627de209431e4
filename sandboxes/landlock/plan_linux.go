package landlock

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// plan is the supervisor's description of the sandbox.
type plan struct {
	Run      string
	UID, GID int
	Assume   bool // the command must change to this user
	Worktree string
	Read     []string // files and folders, with links resolved
	Write    []string // files and folders, with links resolved
	Ports    []uint16 // ports of the relay to the egress proxy

	Memory int64
	PIDs   int
	Disk   int64

	Groups []string // control groups of commands
	// Limits that the supervisor enforces by polling, because no control group does.
	WatchMemory bool
	WatchPIDs   bool
}

// newPlan checks a spec and returns its plan for this host.
func (p *Provider) newPlan(spec sandboxes.Spec) (*plan, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	l := spec.Limits.WithDefaults()
	out := &plan{
		Run: spec.Run, UID: os.Getuid(), GID: os.Getgid(), Worktree: spec.Worktree,
		Memory: l.Memory, PIDs: l.PIDs, Disk: l.Disk,
	}
	for _, path := range slices.Concat(supervisor.SystemPaths(), p.show, etcFiles()) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(real) || supervisor.Reserved(real) {
			continue
		}
		if info, err := os.Lstat(real); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			out.Read = append(out.Read, real)
		}
	}
	if err := out.addSpec(spec); err != nil {
		return nil, err
	}
	out.Write = slices.DeleteFunc(out.Write, func(path string) bool { return out.covered(path) })
	out.Read = slices.DeleteFunc(out.Read, func(path string) bool { return out.covered(path) || out.mayWrite(path) })
	return out, out.identify()
}

// covered reports whether a path is below a writable folder, whose rule then applies. The path must have no rule of its
// own: a command could replace it by a link, and the next command's rule would follow the link.
func (p *plan) covered(path string) bool {
	return slices.ContainsFunc(p.Write, func(dir string) bool { return path != dir && sandboxes.IsInside(path, dir) })
}

// etcFiles returns the files of /etc about users and the machine. Without mounts nothing can cover them, so commands see
// the host's own.
func etcFiles() []string {
	return []string{"/etc/passwd", "/etc/group", "/etc/hosts", "/etc/hostname", "/etc/nsswitch.conf", "/etc/resolv.conf"}
}

// identify sets the user of commands: ralph's own or, if that is root, the worktree's owner. It is never root: the kernel
// does not limit root's processes, and polling cannot outrun a fork bomb.
func (p *plan) identify() error {
	if p.UID != 0 {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Stat(p.Worktree, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: p.Worktree, Err: err}
	}
	if st.Uid == 0 {
		return fmt.Errorf("nothing limits root's processes here, and %s belongs to root: "+
			"run ralph as another user, or choose native, docker or podman",
			p.Worktree)
	}
	p.UID, p.GID, p.Assume = int(st.Uid), int(st.Gid), true
	return nil
}

// addSpec adds the folders and mounts of the spec. It refuses those that break the isolation or are not supported.
func (p *plan) addSpec(spec sandboxes.Spec) error {
	to := &p.Write
	if spec.ReadOnly {
		to = &p.Read
	}
	if err := p.addFolder("worktree", spec.Worktree, to); err != nil {
		return err
	}
	if spec.GitDir != "" {
		if err := p.addFolder("private repository", spec.GitDir, &p.Write); err != nil {
			return err
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
	return nil
}

func (p *plan) addFolder(name, path string, to *[]string) error {
	real, err := supervisor.CheckFolder(name, path)
	if err == nil {
		*to = append(*to, real)
	}
	return err
}

// addMount adds a mount of the user, which is possible only at its own path.
func (p *plan) addMount(m sandboxes.Mount) error {
	if filepath.Clean(m.Host) != filepath.Clean(m.Inside) {
		return fmt.Errorf("mount %q at %q: %w: landlock shows a file only at its own absolute path",
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

// keepReadOnly refuses a path below a writable folder: rules can only add access.
func (p *plan) keepReadOnly(path string) error {
	if p.mayWrite(path) {
		return fmt.Errorf("show %s: %w: landlock cannot keep it read-only inside a writable folder",
			path, sandboxes.ErrUnsupported)
	}
	return nil
}

func (p *plan) mayWrite(path string) bool {
	return slices.ContainsFunc(p.Write, func(dir string) bool { return sandboxes.IsInside(path, dir) })
}

func (p *plan) mayRead(path string) bool {
	return p.mayWrite(path) || slices.ContainsFunc(p.Read, func(dir string) bool { return sandboxes.IsInside(path, dir) })
}

// path returns the PATH inside.
func (p *plan) path(host string) string {
	return supervisor.Path(host, func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		return err == nil && p.mayRead(real) && !p.mayWrite(real)
	})
}

// baseEnv returns the environment of every command. Only folders in PATH come from the host. Git must not read the system's
// settings: it would fail, because it has no access.
func baseEnv(path string, dirs *scratch) []string {
	return []string{
		"PATH=" + path, "HOME=" + dirs.home(), "TMPDIR=" + dirs.temp(), "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh",
		"LANG=C.UTF-8", "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1",
	}
}
