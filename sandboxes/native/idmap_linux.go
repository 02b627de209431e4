package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// mappers are user namespaces for mounts on which the files of one user appear as another's.
type mappers struct {
	mu   sync.Mutex
	open map[mapping]*os.File // guarded by mu
}

// mapping shows the files of one owner as another's, and the other way round.
type mapping struct{ fromUID, fromGID, toUID, toGID int }

// mount returns a mount of a file or folder on which owners are mapped. It needs root.
func (m *mappers) mount(path string, how mapping) (*os.File, error) {
	namespace, err := m.namespace(how)
	if err != nil {
		return nil, err
	}
	fd, err := copyMount(path)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace.Fd())}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("show the files of user %d to the sandbox's user (the file system must know id-mapped mounts, "+
			"as ext4, xfs, btrfs and tmpfs do; or run ralph as an ordinary user): %w", how.fromUID, err)
	}
	return file, nil
}

// show returns the mount of what is shown; nil when the first process has to try by itself.
func (m *mappers) show(s shown, who identity) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Stat(s.Host, &st); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: s.Host, Err: err}
	}
	uid, gid := int(st.Uid), int(st.Gid)
	if (uid != who.hostUID || gid != who.hostGID) && !(s.common && openToAll(st.Mode)) {
		file, err := m.mount(s.Host, mapping{uid, gid, who.hostUID, who.hostGID})
		if err == nil || s.Write {
			return file, err
		} // else it is seen as it is: readable where everybody may read it
	}
	fd, err := copyMount(s.Host)
	if err != nil {
		return nil, nil //nolint:nilerr // the first process says why it cannot
	}
	return os.NewFile(uintptr(fd), s.Host), nil
}

// openToAll reports whether every user may use the file, or the folder.
func openToAll(mode uint32) bool {
	const read, enter = 0o004, 0o001
	if mode&unix.S_IFMT == unix.S_IFDIR {
		return mode&(read|enter) == read|enter
	}
	return mode&read != 0
}

// namespace returns the user namespace for a mapping. They are few, and kept as long as the provider.
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

// newNamespace borrows the namespace of a process that lives just long enough: this program as a first process, which
// waits for a plan that never comes.
func newNamespace(how mapping) (*os.File, error) {
	ours, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = ours.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = theirs.Close()
		return nil, err
	}
	p, err := startApart("", unix.CLONE_NEWUSER, null, null, null, theirs)
	_, _ = theirs.Close(), null.Close()
	if err != nil {
		return nil, err
	}
	var file *os.File
	who := identity{insideUID: how.fromUID, insideGID: how.fromGID, hostUID: how.toUID, hostGID: how.toGID, root: true}
	if err = who.mapTo(p.Pid); err == nil {
		file, err = os.Open(procFile(p.Pid, "ns/user"))
	}
	_ = p.Kill()
	_, waitErr := p.Wait()
	if err != nil {
		return nil, errors.Join(err, waitErr)
	}
	return file, nil
}

// mapOwners mounts what is shown, when ralph is root, so that the processes inside can use it as its owner could: they
// are another user, who may not even get to it. What the plan then says of it is where its mount comes.
func (p *Provider) mapOwners(out *plan, who identity) (given []*os.File, err error) {
	if !who.root {
		return nil, nil
	}
	defer func() {
		if err != nil {
			closeAll(given)
		}
	}()
	for i := range out.Shown {
		s := &out.Shown[i]
		if s.system {
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
