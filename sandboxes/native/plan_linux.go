package native

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// insideID is the user and group inside if ralph runs as root: agents refuse to run as root.
const insideID = 1000

// plan is the init process's description of the sandbox, with paths of the host.
type plan struct {
	Run      string
	UID      int
	GID      int
	Assume   bool // the init process starts as another user and changes to this one
	Worktree string
	Workdir  string // path of the worktree inside
	GitDir   string
	Shown    []shown // in mount order
	// HomeLayer means that the mount at layerPlace is the lower layer of the home. Lower lists the places of the worktree's
	// lower folders, the uppermost first.
	HomeLayer bool
	Lower     []string
	Egress    string
	// EgressGiven is the index, from 1, of the socket's mount among the files sent with the plan; 0: none.
	EgressGiven int

	Memory int64
	PIDs   int
	Disk   int64
	// Limits that the init process enforces by polling, because no control group does.
	WatchMemory bool
	WatchPIDs   bool
}

// shown is a host file or folder that is visible inside.
type shown struct {
	Host   string
	Inside string
	Write  bool
	File   bool
	// Given is the index, from 1, of its mount among the files sent with the plan; 0: the init process opens Host.
	Given int

	system       bool // part of the host's system, the same for all users
	publicAccess bool // accessible with the permissions of other users, if these allow any access
}

// newPlan checks a spec and returns its plan for this host.
func (p *Provider) newPlan(spec sandboxes.Spec) (*plan, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	l := spec.Limits.WithDefaults()
	out := &plan{
		Run:      spec.Run,
		UID:      os.Getuid(),
		GID:      os.Getgid(),
		Worktree: spec.Worktree,
		Workdir:  filepath.Clean(cmp.Or(spec.Workdir, spec.Worktree)),
		GitDir:   spec.GitDir,
		Egress:   spec.Egress,
		Memory:   l.Memory,
		PIDs:     l.PIDs,
		Disk:     l.Disk,
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

// addSpec adds the folders and mounts of the spec, and refuses those that would break the isolation.
func (p *plan) addSpec(spec sandboxes.Spec) error {
	if err := p.addLower(spec); err != nil {
		return err
	}
	if _, err := supervisor.CheckFolder("worktree", spec.Worktree); err != nil {
		return err
	}
	if !filepath.IsAbs(p.Workdir) || supervisor.Reserved(p.Workdir) {
		return fmt.Errorf("the worktree cannot be shown at %q", p.Workdir)
	}
	p.Shown = append(p.Shown, shown{Host: spec.Worktree, Inside: p.Workdir, Write: !spec.ReadOnly})
	if spec.GitDir != "" {
		if err := p.addFolder("private repository", spec.GitDir, true); err != nil {
			return err
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
	if spec.Home != "" {
		if _, err := supervisor.CheckFolder("home", spec.Home); err != nil {
			return err
		}
		at := shown{Host: spec.Home, Inside: home, Write: true}
		if !spec.FillHome {
			at.Inside, at.Write, p.HomeLayer = layerPlace, false, true
		}
		p.Shown = append(p.Shown, at)
	}
	// Parent folders come before what is shown below them.
	slices.SortStableFunc(p.Shown, func(a, b shown) int {
		return cmp.Compare(strings.Count(a.Inside, "/"), strings.Count(b.Inside, "/"))
	})
	return nil
}

// addFolder adds a folder at its own path.
func (p *plan) addFolder(name, path string, write bool) error {
	if _, err := supervisor.CheckFolder(name, path); err != nil {
		return err
	}
	p.Shown = append(p.Shown, shown{Host: path, Inside: path, Write: write})
	return nil
}

// addMount adds a mount of the user.
func (p *plan) addMount(m sandboxes.Mount) error {
	host, info, err := m.Source()
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.Host, err)
	}
	if !filepath.IsAbs(m.Inside) {
		return fmt.Errorf("mount %s: %q is not an absolute path inside", m.Host, m.Inside)
	}
	inside := filepath.Clean(m.Inside)
	if supervisor.Reserved(inside) {
		return fmt.Errorf("mount %s: the sandbox needs %s for itself; choose another place", m.Host, inside)
	}
	p.Shown = append(p.Shown, shown{Host: host, Inside: inside, Write: !m.ReadOnly, File: !info.IsDir()})
	return nil
}

// owner returns the owner of a file on the host.
func owner(path string) (uid, gid int, err error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return int(st.Uid), int(st.Gid), nil
}
