package landlock

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// answersHere are the older twins of the calls of answers, which this architecture still has.
func answersHere() map[int32]func(*warden, *question) error {
	micro := func(b []byte) []unix.Timespec {
		return []unix.Timespec{timespec(b[0:8], b[8:16], 1000), timespec(b[16:24], b[24:32], 1000)}
	}
	return map[int32]func(*warden, *question) error{
		unix.SYS_CHMOD: func(w *warden, q *question) error { return w.chmod(q, plainly(q, 0, 0), q.Args[1]) },
		unix.SYS_CHOWN: func(w *warden, q *question) error { return w.chown(q, plainly(q, 0, 0), q.Args[1], q.Args[2]) },
		unix.SYS_LCHOWN: func(w *warden, q *question) error {
			return w.chown(q, plainly(q, 0, unix.AT_SYMLINK_NOFOLLOW), q.Args[1], q.Args[2])
		},
		unix.SYS_UTIME: func(w *warden, q *question) error {
			return w.setTimes(q, plainly(q, 0, 0), q.Args[1], func(b []byte) []unix.Timespec {
				zero := binary.NativeEndian.AppendUint64(nil, 0)
				return []unix.Timespec{timespec(b[0:8], zero, 1), timespec(b[8:16], zero, 1)}
			}, 16)
		},
		unix.SYS_UTIMES: func(w *warden, q *question) error { return w.setTimes(q, plainly(q, 0, 0), q.Args[1], micro, 32) },
		unix.SYS_FUTIMESAT: func(w *warden, q *question) error {
			p := at(q, 0)
			if p.path == 0 {
				p = onFD(q)
			}
			return w.setTimes(q, p, q.Args[2], micro, 32)
		},
	}
}
