package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// outbox keeps the messages that wait for one channel, a file each, in a folder that processes share. Whoever sends a message
// holds a lock on its file; the kernel releases the locks of a process that dies. Its methods are safe for concurrent use, also by
// several processes.
type outbox struct {
	dir     string
	channel string // begins the names of the channel's files
}

// The bounds of an outbox.
const (
	queued     = 64                 // messages of a channel
	outboxAge  = 7 * 24 * time.Hour // older messages are not news
	outboxSize = 64 << 10           // of a file
)

// How names of files begin or end.
const (
	temporary = ".new-" // not yet whole
	waiting   = ".json"
	damaged   = ".damaged"
)

var errFull = errors.New("too many wait")

// newOutbox is that of a channel. Messages to one place are not sent to another, so the name says where they go, as a digest: an
// address may be a secret.
func newOutbox(dir string, c Channel) outbox {
	sum := sha256.Sum256([]byte(c.Place()))
	return outbox{dir: dir, channel: c.Name() + "-" + hex.EncodeToString(sum[:8]) + "-"}
}

// entry is a message whose file this process has locked.
type entry struct {
	Message
	path string
	file *os.File
}

// add keeps a message until it is sent. It returns errFull where too many wait.
func (o outbox) add(m Message) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	names, err := o.names()
	if err == nil && len(names) >= queued {
		err = errFull
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(o.dir, temporary)
	if err != nil {
		return err
	}
	unique := strings.TrimPrefix(filepath.Base(f.Name()), temporary)
	path := filepath.Join(o.dir, fmt.Sprintf("%s%020d-%s%s", o.channel, time.Now().UnixNano(), unique, waiting))
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return o.sync()
}

// sync makes the folder's names durable.
func (o outbox) sync() error {
	d, err := os.Open(o.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// names are the files of the channel's messages, the oldest first.
func (o outbox) names() (names []string, err error) {
	entries, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), o.channel) && strings.HasSuffix(e.Name(), waiting) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// take takes over a message that nobody sends. ok is false where somebody does, or has sent it. A file that holds no message is set
// aside, and the error names it.
func (o outbox) take(name string) (e entry, ok bool, err error) {
	e.path = filepath.Join(o.dir, name)
	f, err := os.OpenFile(e.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return e, false, err
	}
	held, err := f.Stat()
	if now, lerr := os.Lstat(e.path); err != nil || lerr != nil || !os.SameFile(held, now) { // it has been sent meanwhile
		return e, false, errors.Join(err, f.Close())
	}
	text, err := io.ReadAll(io.LimitReader(f, outboxSize+1))
	if err == nil && len(text) > outboxSize {
		err = errors.New("it is too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &e.Message)
	}
	if err == nil && (e.ID == "" || e.Text == "") {
		err = errors.New("it holds no message")
	}
	if err != nil {
		aside := e.path + damaged
		return e, false, errors.Join(fmt.Errorf("cannot be read and is set aside as %s: %w",
			aside, err), os.Rename(e.path, aside), f.Close())
	}
	e.file = f
	return e, true, nil
}

// done removes a message that needs no sending any more.
func (e entry) done() error { return errors.Join(os.Remove(e.path), e.file.Close()) }

// leave leaves a message to whoever comes next.
func (e entry) leave() { _ = e.file.Close() }

// sweep removes what is too old to be sent, of any channel, and returns how many messages that were. It leaves alone what is
// locked.
func sweep(dir string) (old int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, e := range entries {
		info, ierr := e.Info()
		if ierr != nil || time.Since(info.ModTime()) < outboxAge || !info.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, ferr := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if ferr != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			rerr := os.Remove(path)
			if err = errors.Join(err, rerr); rerr == nil && strings.HasSuffix(path, waiting) {
				old++
			}
		}
		_ = f.Close()
	}
	return old, err
}
