package notify

import (
	"crypto/rand"
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

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/filelock"
)

// outbox stores the pending messages of one channel, one file each, in a folder that processes share. A process locks the
// file of the message that it sends; the kernel releases the locks of a process that dies. The methods are safe for
// concurrent use, also by several processes.
type outbox struct {
	dir     string
	channel string // prefix of the channel's file names
}

// Limits of an outbox.
const (
	queued     = 64                 // messages per channel
	outboxAge  = 7 * 24 * time.Hour // older messages are dropped
	outboxSize = 64 << 10           // bytes per file
)

// Suffixes of file names.
const (
	messageSuffix = ".json"
	damaged       = ".damaged"
)

var errFull = errors.New("too many wait")

// newOutbox returns the outbox of a channel. The file names include a digest of the channel's place, so that a message for
// one place is never sent to another. It is a digest because an address may be a secret.
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

// add stores a message until it is sent. It returns errFull if too many are pending.
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
	name := fmt.Sprintf("%s%020d-%s%s", o.channel, time.Now().UnixNano(), rand.Text(), messageSuffix)
	return disk.WriteFile(filepath.Join(o.dir, name), text, 0o600, disk.Power)
}

// names returns the file names of the channel's messages, the oldest first.
func (o outbox) names() (names []string, err error) {
	entries, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), o.channel) && strings.HasSuffix(e.Name(), messageSuffix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// lockAndRead locks and reads a message. ok is false if another process is sending it or has sent it. A file that does not contain
// a message is renamed, and the error names it.
func (o outbox) lockAndRead(name string) (e entry, ok bool, err error) {
	e.path = filepath.Join(o.dir, name)
	f, err := os.OpenFile(e.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, err
	}
	if locked, err := filelock.Try(f); !locked {
		_ = f.Close()
		return e, false, err
	}
	held, err := f.Stat()
	if now, lerr := os.Lstat(e.path); err != nil || lerr != nil || !os.SameFile(held, now) { // another process sent and removed it meanwhile
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
		err = errors.New("it contains no message")
	}
	if err != nil {
		aside := e.path + damaged
		return e, false, errors.Join(fmt.Errorf("cannot be read and is set aside as %s: %w",
			aside, err), os.Rename(e.path, aside), f.Close())
	}
	e.file = f
	return e, true, nil
}

// done removes a message that has been sent or dropped.
func (e entry) done() error { return errors.Join(os.Remove(e.path), e.file.Close()) }

// unlock unlocks a message for a later attempt.
func (e entry) unlock() { _ = e.file.Close() }

// sweep removes files of any channel that are too old, except locked ones, and returns the number of removed messages.
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
		if locked, _ := filelock.Try(f); locked {
			rerr := os.Remove(path)
			if err = errors.Join(err, rerr); rerr == nil && strings.HasSuffix(path, messageSuffix) {
				old++
			}
		}
		_ = f.Close()
	}
	return old, err
}
