package landlock

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// chmod changes a file's permissions.
func (w *warden) chmod(q *question, p place, mode uint64) error {
	fd, err := w.own(q, p)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.EOPNOTSUPP
	}
	return unix.Fchmodat(unix.AT_FDCWD, self(fd), uint32(mode)&0o7777, 0)
}

// chown lets a file go to whom it belongs to already, as far as is asked: a command has no other right.
func (w *warden) chown(q *question, p place, uid, gid uint64) error {
	fd, err := w.own(q, p)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	same := func(asked uint64, is uint32) bool { return uint32(asked) == anyBit || uint32(asked) == is }
	if !same(uid, st.Uid) || !same(gid, st.Gid) {
		return unix.EPERM
	}
	return nil
}

// utimensat sets a file's times.
func (w *warden) utimensat(q *question) error {
	p := at(q, q.Args[3])
	if p.path == 0 {
		p = onFD(q)
	}
	return w.setTimes(q, p, q.Args[2], func(b []byte) []unix.Timespec {
		return []unix.Timespec{timespec(b[0:8], b[8:16], 1), timespec(b[16:24], b[24:32], 1)}
	}, 32)
}

// setTimes sets a file's times, which size bytes at an address hold; 0 means now.
func (w *warden) setTimes(q *question, p place, address uint64, decode func([]byte) []unix.Timespec, size int) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if address != 0 {
		b, err := w.memory(q, address, size)
		if err != nil {
			return err
		}
		times = decode(b)
	}
	fd, err := w.own(q, p)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
}

// timespec reads a time of seconds and a fraction, which counts nanoseconds times scale. The fraction's special values
// stay as they are.
func timespec(seconds, fraction []byte, scale int64) unix.Timespec {
	t := unix.NsecToTimespec(0)
	s, f := int64(binary.NativeEndian.Uint64(seconds)), int64(binary.NativeEndian.Uint64(fraction))
	t.Sec = s
	if scale > 1 {
		if f < 0 || f >= int64(time.Second)/scale {
			f = -1 // which the kernel refuses
		}
		f *= scale
	}
	t.Nsec = f
	return t
}

// watchFile adds a file that the command may read to what one of its inotify descriptors tells about.
func (w *warden) watchFile(q *question) (int64, error) {
	const dontFollow = unix.IN_DONT_FOLLOW
	p, mask := plainly(q, 1, 0), uint32(q.Args[2])
	if mask&dontFollow != 0 {
		p.flags = unix.AT_SYMLINK_NOFOLLOW
	}
	fd, path, err := w.open(q, p)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	if !w.plan.mayRead(path) {
		return 0, unix.EACCES
	}
	notify, err := w.borrow(q)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(notify) }()
	n, err := unix.InotifyAddWatch(notify, self(fd), mask&^dontFollow)
	return int64(n), err
}

// borrow copies the descriptor that is a call's first argument.
func (w *warden) borrow(q *question) (int, error) {
	const pidfdThread = unix.O_EXCL
	process, err := unix.PidfdOpen(int(q.PID), pidfdThread)
	if err != nil {
		return -1, unix.EPERM
	}
	defer func() { _ = unix.Close(process) }()
	if err := w.waits(q); err != nil {
		return -1, err
	}
	fd, err := unix.PidfdGetfd(process, int(int32(uint32(q.Args[0]))), 0)
	if err != nil {
		return -1, err
	}
	return fd, nil
}
