package native

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes/internal/supervisor"
)

// mappers caches user namespaces for id-mapped mounts, which show the files of one user as another's.
type mappers struct {
	mu   sync.Mutex
	open map[mapping]*os.File // guarded by mu
}

// mapping shows the files of one owner as another's, and vice versa.
type mapping struct{ fromUID, fromGID, toUID, toGID int }

// mount returns an id-mapped mount of a file or folder. It needs root.
func (m *mappers) mount(path string, how mapping) (*os.File, error) {
	namespace, err := m.namespace(how)
	if err != nil {
		return nil, err
	}
	file, err := copyMount(path)
	if err != nil {
		return nil, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace.Fd())}
	if err := unix.MountSetattr(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("show the files of user %d to the sandbox's user (the file system must know id-mapped mounts, "+
			"as ext4, xfs, btrfs and tmpfs do; or run ralph as an ordinary user): %w", how.fromUID, err)
	}
	return file, nil
}

// show returns the mount of a shown file or folder; nil if the init process must open it.
func (m *mappers) show(s shown, who identity) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Stat(s.Host, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: s.Host, Err: err}
	}
	uid, gid := int(st.Uid), int(st.Gid)
	if (uid != who.hostUID || gid != who.hostGID) && !(s.publicAccess && openToAll(st.Mode)) {
		file, err := m.mount(s.Host, mapping{uid, gid, who.hostUID, who.hostGID})
		if err == nil || s.Write {
			return file, err
		} // without a mapping, its permissions for others apply
	}
	file, err := copyMount(s.Host)
	if err != nil {
		return nil, nil //nolint:nilerr // the init process says why
	}
	return file, nil
}

// openToAll reports whether every user may read the file or folder.
func openToAll(mode uint32) bool {
	const read, enter = 0o004, 0o001
	if mode&unix.S_IFMT == unix.S_IFDIR {
		return mode&(read|enter) == read|enter
	}
	return mode&read != 0
}

// namespace returns the user namespace for a mapping. There are few mappings; the namespaces stay open with the provider.
func (m *mappers) namespace(how mapping) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.open[how]; f != nil {
		return f, nil
	}
	f, err := newNamespace(how)
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	if m.open == nil {
		m.open = make(map[mapping]*os.File)
	}
	m.open[how] = f
	return f, nil
}

// newNamespace opens the user namespace of a temporary process: an init process that gets no plan.
func newNamespace(how mapping) (file *os.File, err error) {
	c, err := supervisor.Start(supervisor.Process{Role: role, Namespaces: unix.CLONE_NEWUSER, Dies: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Kill(context.Background())) }()
	who := identity{insideUID: how.fromUID, insideGID: how.fromGID, hostUID: how.toUID, hostGID: how.toGID, root: true}
	if err := who.mapTo(c.PID()); err != nil {
		return nil, err
	}
	return os.Open(procFile(c.PID(), "ns/user"))
}

// mapOwners opens id-mapped mounts of what is shown, if ralph is root, so that the processes inside, which run as another
// user, have the owner's access. The plan then refers to these mounts by their index in given.
func (p *Provider) mapOwners(out *plan, who identity) (given []*os.File, err error) {
	if !who.root {
		return nil, nil
	}
	defer func() {
		if err != nil {
			closeFiles(given)
		}
	}()
	for i := range out.Shown {
		s := &out.Shown[i]
		if s.system || out.isLayeredTree(*s) {
			continue
		}
		file, err := p.mappers.show(*s, who)
		if err != nil {
			return given, fmt.Errorf("show %s: %w", s.Host, err)
		}
		if file == nil {
			continue
		}
		given = append(given, file)
		s.Given = len(given)
	}
	if out.Egress == "" {
		return given, nil
	}
	uid, gid, err := owner(out.Egress)
	if err != nil || uid == who.hostUID {
		return given, err
	}
	file, err := p.mappers.mount(out.Egress, mapping{uid, gid, who.hostUID, who.hostGID})
	if err != nil {
		return given, fmt.Errorf("lead to the egress socket: %w", err)
	}
	given = append(given, file)
	out.EgressGiven = len(given)
	return given, nil
}
