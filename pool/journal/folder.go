package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const (
	eventsFile = "events.jsonl"
	stopFile   = "stop"
)

// Folder is a run's folder: its events, raw agent streams and logs. Only the user can read it. It is safe for
// concurrent use.
type Folder struct {
	dir string

	mu     sync.Mutex
	events *os.File // guarded by mu
	last   uint64   // guarded by mu; the highest number of an event
	latest string   // guarded by mu; the file that Create has opened last
	from   int64    // guarded by mu; how long it was
}

// OpenFolder makes the folder of a run, or opens it again.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, eventsFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	folder := &Folder{dir: dir, events: f}
	if err := ReadEvents(dir, func(e Event) error { folder.last = max(folder.last, e.Seq); return nil }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return folder, nil
}

// Last is the highest number of an event in the folder, also of those that an earlier process has written.
func (f *Folder) Last() uint64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// endLine ends a line that a crash or a full disk has cut: the next event would be lost with it.
func endLine(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.WriteString("\n")
	return err
}

// Append writes one event; that of a command that begins with the file that was made for its output. The event log must not stop
// the work: an error is the caller's to log, once.
func (f *Folder) Append(e Event) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, e.Seq)
	if e.Begins() {
		e.Log, e.LogFrom = f.latest, f.from
		f.latest, f.from = "", 0 // another command has another file, or none if that cannot be made
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	if f.events == nil {
		return nil
	}
	if err = endLine(f.events); err == nil {
		_, err = f.events.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// Create opens a file of the folder for appending.
func (f *Folder) Create(name string) (io.WriteCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest, f.from = "", 0
	file, err := os.OpenFile(filepath.Join(f.dir, filepath.Base(name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f.latest = filepath.Base(name)
	if info, err := file.Stat(); err == nil {
		f.from = info.Size()
	}
	return file, nil
}

// StopRequested reports whether somebody has asked, with RequestStop, that the run end.
func (f *Folder) StopRequested() bool {
	_, err := os.Lstat(filepath.Join(f.dir, stopFile))
	return err == nil
}

// StopObeyed removes the request, if there is one.
func (f *Folder) StopObeyed() error {
	if f == nil {
		return nil
	}
	if err := os.Remove(filepath.Join(f.dir, stopFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run folder: %w", err)
	}
	return nil
}

// StopRequested reports whether somebody has asked that a run end which has not begun, and so has no Folder.
func StopRequested(r Record) bool { return (&Folder{dir: r.Dir}).StopRequested() }

// StopObeyed removes such a request, and its folder.
func StopObeyed(r Record) error {
	err := (&Folder{dir: r.Dir}).StopObeyed()
	_ = os.Remove(r.Dir) // it may have more in it
	return err
}

// Close closes the event log. It may be called again.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		return nil
	}
	err := f.events.Close()
	f.events = nil
	return err
}

// RequestStop asks the process that works the run to end it, and returns at once. The run's work is kept. A run that waits for its
// claim has no folder yet: one is made.
func RequestStop(r Record) error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return fmt.Errorf("stop %s: %w", r.Key, err)
	}
	f, err := os.OpenFile(filepath.Join(r.Dir, stopFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("stop %s: %w", r.Key, err)
	}
	return f.Close()
}

// ReadEvents reads the events of a run's folder in order and calls each. It stops at the first error of each. A line
// that is not an event, such as one that a crash cut, is skipped.
func ReadEvents(dir string, each func(Event) error) error {
	return ReadEventsFrom(dir, 0, func(e Event, _ int64) error { return each(e) })
}

// ReadEventsFrom is ReadEvents from an offset in bytes: 0, or the next of an earlier call, which is where the event ends. So
// a reader can follow a run that is on.
func ReadEventsFrom(dir string, offset int64, each func(e Event, next int64) error) error {
	f, err := os.Open(filepath.Join(dir, eventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer f.Close()
	offset, err = f.Seek(max(0, offset), io.SeekStart)
	if info, serr := f.Stat(); err == nil && serr == nil && info.Size() <= offset {
		return nil // nothing is new
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	lines := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		offset += int64(len(line))
		var e Event
		if len(line) > 1 && json.Unmarshal(line, &e) == nil && e.Kind != "" {
			if err := each(e, offset); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

// Prune deletes the oldest run folders below dir, so that keep are left.
func Prune(dir string, keep int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prune runs: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
	for i := range len(entries) - keep { // names begin with the time: ReadDir gives the oldest first
		if err := os.RemoveAll(filepath.Join(dir, entries[i].Name())); err != nil {
			return fmt.Errorf("prune runs: %w", err)
		}
	}
	return nil
}
