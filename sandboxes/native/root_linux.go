package native

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// scratch is the place of the file system for temporary files while the root is built.
const scratch = "/.scratch"

// makeRoot replaces the root of this process's mount namespace. It first opens mounts of the shown folders. It attaches
// them only after the host's root is gone, so that no link in a worktree can lead out.
func makeRoot(p *plan, given []*os.File) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	links := systemLinks()
	mounts, err := openMounts(p, given)
	defer closeFiles(mounts)
	if err != nil {
		return err
	}
	devices, err := pickDevices()
	defer closeFiles(slices.Collect(maps.Values(devices)))
	if err != nil {
		return err
	}
	if err := enterEmpty(); err != nil {
		return err
	}
	if err := createBaseFiles(p, links); err != nil {
		return err
	}
	if err := placeDevices(devices); err != nil {
		return err
	}
	for i, s := range p.Shown {
		put := func() error { return place(int(mounts[i].Fd()), s) }
		if p.isLayeredTree(s) {
			put = func() error { return p.layTree(s.Write) }
		}
		if err := put(); err != nil {
			return fmt.Errorf("show %s: %w", s.Inside, err)
		}
		if s.Inside == layerPlace { // before anything that is shown below the home
			if err := layHome(); err != nil {
				return err
			}
		}
	}
	if p.GitDir != "" {
		if err := coverGitFile(p); err != nil {
			return err
		}
	}
	return finishRoot(p)
}

// layerPlace is the place of the home's lower layer while the root is built.
const layerPlace = "/.layer"

// layHome mounts the home over its lower layer. Changes go to the scratch space, below the mount. If the kernel does not
// support it (overlayfs needs extended attributes, which tmpfs has since Linux 6.6), the home stays empty.
func layHome() error {
	upper, work := filepath.Join(home, "upper"), filepath.Join(home, "work")
	for _, dir := range []string{upper, work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	err := unix.Setxattr(upper, "user.overlay.opaque", []byte("n"), 0)
	if err == nil {
		err = unix.Removexattr(upper, "user.overlay.opaque")
	}
	if err == nil {
		err = overlay(home, layerPlace, upper, work)
	}
	if err != nil {
		if err := errors.Join(os.Remove(upper), os.RemoveAll(work)); err != nil {
			return err
		}
	}
	return removeMount(layerPlace)
}

// overlay mounts a folder with lower below upper, which gets all changes. Without userxattr the mount would succeed, too,
// but the kernel could not record there that a folder of lower was deleted.
func overlay(at, lower, upper, work string) error {
	options := "userxattr,lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work
	return unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options)
}

func removeMount(at string) error {
	if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", at, err)
	}
	return os.Remove(at)
}

// openMounts opens a mount of everything that is shown.
func openMounts(p *plan, given []*os.File) (mounts []*os.File, err error) {
	for _, s := range p.Shown {
		if p.isLayeredTree(s) {
			mounts = append(mounts, nil)
			continue
		}
		if s.Given > len(given) {
			return mounts, fmt.Errorf("show %s: its mount is missing", s.Host)
		}
		if s.Given > 0 {
			mounts = append(mounts, given[s.Given-1])
			continue
		}
		mount, err := copyMount(s.Host)
		if errors.Is(err, unix.EACCES) {
			return mounts, errors.New("show " + s.Host + ": its mode, or that of a parent folder, denies access; " +
				"look with: namei -m " + s.Host)
		}
		if err != nil {
			return mounts, fmt.Errorf("show %s: %w", s.Host, err)
		}
		mounts = append(mounts, mount)
	}
	return mounts, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// copyMount returns a detached mount of a file or folder, including everything mounted below it.
func copyMount(path string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// enterEmpty creates an empty root and unmounts the host's. The host's /proc must stay until the new one is mounted: the
// kernel refuses a /proc that shows more than the existing one.
func enterEmpty() error {
	const base, old = "/tmp", "/.old" // the host's own /tmp is uncovered again once the root has moved
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m,nr_inodes=4k"); err != nil {
		return fmt.Errorf("mount an empty root: %w", err)
	}
	if err := os.Mkdir(base+old, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(base, base+old); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := os.Mkdir("/proc", 0o555); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc (is ralph itself in a container that hides parts of it?): %w", err)
	}
	if err := unix.Unmount(old, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the host's files: %w", err)
	}
	return os.Remove(old)
}

// createBaseFiles creates the folders and settings of every sandbox.
func createBaseFiles(p *plan, links map[string]string) error {
	if err := mountScratch(p.Disk); err != nil {
		return err
	}
	for _, dir := range []string{"/dev", "/etc", "/home", "/mnt", "/opt", "/root", "/run", "/srv", "/sys", "/var", "/var/empty", home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for name, text := range writtenSettings(p.UID, p.GID) {
		if err := os.WriteFile("/etc/"+name, []byte(text), 0o444); err != nil {
			return err
		}
	}
	for path, to := range links {
		if err := os.Symlink(to, path); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", "/var/run"); err != nil {
		return err
	}
	return placeScratch()
}

// mountScratch mounts one file system for /tmp, the home and the other writable places, so that they share one limit.
func mountScratch(size int64) error {
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	options := fmt.Sprintf("mode=755,size=%d,nr_inodes=%d", size, max(size/4096, 1024))
	if err := unix.Mount("tmpfs", scratch, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount scratch space: %w", err)
	}
	return nil
}

// placeScratch mounts the parts of the scratch space in their places.
func placeScratch() error {
	if err := os.MkdirAll("/dev/shm", 0o755); err != nil {
		return err
	}
	for inside, mode := range map[string]fs.FileMode{
		"/tmp":     0o777 | fs.ModeSticky,
		"/var/tmp": 0o777 | fs.ModeSticky,
		"/dev/shm": 0o777 | fs.ModeSticky,
		"/run":     0o755,
		home:       0o700,
	} {
		part := filepath.Join(scratch, filepath.Base(filepath.Dir(inside))+"-"+filepath.Base(inside))
		if err := os.Mkdir(part, mode.Perm()); err != nil {
			return err
		}
		if err := os.Chmod(part, mode); err != nil {
			return err
		}
		if err := os.MkdirAll(inside, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(part, inside, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", inside, err)
		}
	}
	if err := unix.Unmount(scratch, unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove(scratch)
}

// place attaches a mount at its path inside.
func place(fd int, s shown) error {
	if err := makePlace(s.Inside, s.File); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if !s.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("restrict the mount: %w", err)
	}
	return attach(fd, s.Inside)
}

func attach(fd int, inside string) error {
	return unix.MoveMount(fd, "", unix.AT_FDCWD, inside, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// makePlace creates the file or folder that a mount covers, if missing.
func makePlace(path string, file bool) error {
	if !file {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|unix.O_NONBLOCK, 0o444)
	if err != nil {
		if _, there := os.Lstat(path); there == nil {
			return nil // it may be unreadable
		}
		return err
	}
	return f.Close()
}

// coverGitFile mounts a file that points to the private repository over the worktree's .git: a mount point cannot be
// removed, renamed or replaced.
func coverGitFile(p *plan) error {
	const text = "/.gitfile"
	if err := os.WriteFile(text, []byte("gitdir: "+p.GitDir+"\n"), 0o444); err != nil {
		return err
	}
	cover, err := copyMount(text)
	if err != nil {
		return err
	}
	defer func() { _ = cover.Close() }()
	fd := int(cover.Fd())
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return err
	}
	// Cover the file itself, not the target of a link.
	at, err := unix.Open(filepath.Join(p.Workdir, ".git"), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cover the worktree's .git file: %w", err)
	}
	defer func() { _ = unix.Close(at) }()
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.Join(errors.New("cover the worktree's .git file: it is not a regular file"), err)
	}
	const flags = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(fd, "", at, "", flags); err != nil {
		return fmt.Errorf("cover the worktree's .git file: %w", err)
	}
	return os.Remove(text)
}

// finishRoot hides the machine's part of /proc, and makes the root read-only.
func finishRoot(p *plan) error {
	_ = os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
	// A second protection: the system call filter refuses new namespaces, too.
	_ = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	limitWatchers()
	if err := maskProc(); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	for _, path := range []string{"/dev", "/"} {
		if err := unix.MountSetattr(unix.AT_FDCWD, path, 0, &attr); err != nil && (path == "/" || !errors.Is(err, unix.EINVAL)) {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	return os.Chdir(p.Workdir)
}

// maskProc hides files of /proc that describe or control the whole machine.
func maskProc() error {
	for _, name := range []string{
		"kcore", "keys", "key-users", "sysrq-trigger", "timer_list", "timer_stats", "sched_debug", "latency_stats",
		"kmsg", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup", "slabinfo", "vmallocinfo", "pagetypeinfo", "iomem",
		"ioports", "modules", "cmdline",
	} {
		path := "/proc/" + name
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		if err := unix.Mount("/dev/null", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	readOnly := []string{"sys", "irq", "fs", "bus", "dynamic_debug", "driver"}
	for _, name := range slices.Concat(readOnly, []string{"acpi", "scsi", "asound", "mpt", "tty"}) {
		path := "/proc/" + name
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if slices.Contains(readOnly, name) {
			err = coverReadOnly(path)
		} else if info.IsDir() {
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=555")
		}
		if err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	return nil
}

// coverReadOnly mounts a read-only view of a folder over it.
func coverReadOnly(path string) error {
	mount, err := copyMount(path)
	if err != nil {
		return err
	}
	defer func() { _ = mount.Close() }()
	fd := int(mount.Fd())
	attr := unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC,
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return err
	}
	return attach(fd, path)
}
