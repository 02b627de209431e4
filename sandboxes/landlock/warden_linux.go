package landlock

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// warden answers the calls that the filter leaves open, from the helper. A caller is hostile, and may change its memory,
// its descriptors and the files while it is asked about: so the warden makes each call itself, on copies of what it has
// judged.
type warden struct {
	plan *plan
	gate *gate
	fd   int // the filter's
}

func newWarden(p *plan) *warden { return &warden{plan: p, gate: newGate()} }

// question is one call that waits, as the kernel tells it.
type question struct {
	ID    uint64
	PID   uint32 // a thread's
	Flags uint32
	Call  int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// verdict is what the kernel is told.
type verdict struct {
	ID    uint64
	Value int64
	Error int32
	Flags uint32
}

// errGoOn lets a call go on as if there had been no question. It is safe only where the rules judge it too, whatever it
// has become by then.
var errGoOn = errors.New("let the call go on")

// answers are the calls by number. Each returns what the call returns.
func answers() map[int32]func(*warden, *question) (int64, error) {
	none := func(f func(*warden, *question) error) func(*warden, *question) (int64, error) {
		return func(w *warden, q *question) (int64, error) { return 0, f(w, q) }
	}
	all := map[int32]func(*warden, *question) (int64, error){
		unix.SYS_CONNECT: none((*warden).connect), unix.SYS_BIND: none((*warden).bind), unix.SYS_LISTEN: none((*warden).listen),
		unix.SYS_INOTIFY_ADD_WATCH: (*warden).watchFile,

		unix.SYS_FCHMOD:    none(func(w *warden, q *question) error { return w.chmod(q, onFD(q), q.Args[1]) }),
		unix.SYS_FCHMODAT:  none(func(w *warden, q *question) error { return w.chmod(q, at(q, 0), q.Args[2]) }),
		unix.SYS_FCHMODAT2: none(func(w *warden, q *question) error { return w.chmod(q, at(q, q.Args[3]), q.Args[2]) }),
		unix.SYS_FCHOWN:    none(func(w *warden, q *question) error { return w.chown(q, onFD(q), q.Args[1], q.Args[2]) }),
		unix.SYS_FCHOWNAT:  none(func(w *warden, q *question) error { return w.chown(q, at(q, q.Args[4]), q.Args[2], q.Args[3]) }),
		unix.SYS_UTIMENSAT: none((*warden).utimensat),
	}
	for call, f := range answersHere() {
		all[call] = none(f)
	}
	return all
}

// answer answers until the process ends.
func (w *warden) answer(fd int) {
	runtime.LockOSThread()
	w.fd = fd
	known := answers()
	for {
		q := new(question)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(q)))
		switch errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // ENOENT: the asker was killed meanwhile
			continue
		default:
			return
		}
		go func() {
			f := known[q.Call]
			if f == nil {
				w.reply(q, 0, unix.ENOSYS)
				return
			}
			value, err := f(w, q)
			w.reply(q, value, err)
		}()
	}
}

func (w *warden) reply(q *question, value int64, err error) {
	v := verdict{ID: q.ID, Value: value}
	var errno unix.Errno
	switch {
	case err == nil:
	case errors.Is(err, errGoOn):
		v.Flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	case errors.As(err, &errno):
		v.Value, v.Error = 0, -int32(errno)
	default:
		v.Value, v.Error = 0, -int32(unix.EPERM)
	}
	// When it fails, the asker has been killed.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v)))
}

// waits fails when the asker waits no more: its number may be another's.
func (w *warden) waits(q *question) error {
	id := q.ID
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id))); errno != 0 {
		return errno
	}
	return nil
}

// memory copies n bytes of the asker's memory.
func (w *warden) memory(q *question, address uint64, n int) ([]byte, error) {
	buf := make([]byte, n)
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(n)
	got, err := unix.ProcessVMReadv(int(q.PID), local, []unix.RemoteIovec{{Base: uintptr(address), Len: n}}, 0)
	if err != nil || got != n {
		return nil, unix.EFAULT
	}
	return buf, w.waits(q)
}

// text copies a path of the asker's. Memory is read to the end of a page at most: what follows may be nobody's.
func (w *warden) text(q *question, address uint64) (string, error) {
	var path []byte
	page := uint64(os.Getpagesize())
	for len(path) < unix.PathMax {
		n := min(page-address%page, uint64(unix.PathMax-len(path)))
		part, err := w.memory(q, address, int(n))
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(path, part[:end]...)), nil
		}
		path = append(path, part...)
		address += n
	}
	return "", unix.ENAMETOOLONG
}

// place is a file as a call names it.
type place struct {
	dir   int32  // descriptor, or AT_FDCWD
	path  uint64 // address; 0: the descriptor itself
	flags uint64 // of AT_…
}

// onFD is a call's first argument, a descriptor.
func onFD(q *question) place { return place{dir: int32(uint32(q.Args[0]))} }

// at is a call's first two arguments, a descriptor and a path below it.
func at(q *question, flags uint64) place {
	return place{dir: int32(uint32(q.Args[0])), path: q.Args[1], flags: flags}
}

// plainly is a call's path.
func plainly(q *question, arg int, flags uint64) place {
	return place{dir: unix.AT_FDCWD, path: q.Args[arg], flags: flags}
}

// open opens what a call names, without the right to read or write it, and says what its path is now. The file has no
// other path that matters: no command can link or move a file from where it may not write to where it may.
func (w *warden) open(q *question, p place) (fd int, path string, err error) {
	name := ""
	if p.path != 0 {
		if name, err = w.text(q, p.path); err != nil {
			return -1, "", err
		}
		if name == "" && p.flags&unix.AT_EMPTY_PATH == 0 {
			return -1, "", unix.ENOENT
		}
	} else if p.dir == unix.AT_FDCWD {
		return -1, "", unix.EFAULT
	}
	from := "/proc/" + strconv.Itoa(int(q.PID)) + "/"
	base := from + "fd/" + strconv.Itoa(int(p.dir))
	if p.dir == unix.AT_FDCWD {
		base = from + "cwd"
	} else if p.dir < 0 {
		return -1, "", unix.EBADF
	}
	flags := unix.O_PATH | unix.O_CLOEXEC
	switch rest, self := strings.CutPrefix(name, "/proc/self/"); {
	case name == "":
		name = base
	case self: // the asker's, not ours
		name = from + rest
	case !strings.HasPrefix(name, "/"):
		name = base + "/" + name
	}
	if p.flags&unix.AT_SYMLINK_NOFOLLOW != 0 && name != base {
		flags |= unix.O_NOFOLLOW
	}
	if fd, err = unix.Open(name, flags, 0); err != nil {
		if name == base {
			return -1, "", unix.EBADF
		}
		return -1, "", err
	}
	if path, err = os.Readlink(self(fd)); err == nil {
		err = w.waits(q)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, "", unix.EPERM
	}
	return fd, path, nil
}

// self is the name of one of our own descriptors.
func self(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// own opens what a call names, when it is a file of the command's user where the command may write.
func (w *warden) own(q *question, p place) (fd int, err error) {
	fd, path, err := w.open(q, p)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if !w.plan.mayWrite(path) || unix.Fstat(fd, &st) != nil || int(st.Uid) != w.plan.UID {
		_ = unix.Close(fd)
		return -1, unix.EPERM
	}
	return fd, nil
}
