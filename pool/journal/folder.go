package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// EventsFile is the name of the file with a run's events, in the run's folder. EventsLimit is its size in bytes from which on it
// gets only the end of the run, so that an agent cannot fill the disk.
const (
	EventsFile        = "events.jsonl"
	EventsLimit int64 = 64 << 20
)

const stopFile = "stop"

// Folder is a run's folder with its events, raw agent streams and logs. Only the user can read it. It is safe for
// concurrent use. A nil Folder stores nothing.
type Folder struct {
	dir string

	mu     sync.Mutex
	events *os.File // guarded by mu
	last   uint64   // guarded by mu; highest sequence number of an event
	full   bool     // guarded by mu; an event did not fit
	latest string   // guarded by mu; the file that Create has opened last
	from   int64    // guarded by mu; size of that file before
}

// OpenFolder opens the folder of a run, and makes it if needed.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, EventsFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	folder := &Folder{dir: dir, events: f}
	if err := ReadEvents(dir, func(e Event) error { folder.last = max(folder.last, e.Seq); return nil }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return folder, nil
}

// Last returns the highest sequence number of an event in the folder, including events of earlier processes.
func (f *Folder) Last() uint64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// endLine adds a newline to a line cut by a crash or a full disk: otherwise the next event would be lost, too. It returns the
// size of the file.
func endLine(f *os.File) (size int64, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
		return info.Size(), err
	}
	_, err = f.WriteString("\n")
	return info.Size() + 1, err
}

// Append writes one event. To the event of a beginning command it adds the file for the command's output. The caller logs
// an error once, because the event log must not stop the work. An event that exceeds EventsLimit is an error, except the first,
// which a warning replaces.
func (f *Folder) Append(e Event) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = max(f.last, e.Seq)
	if e.Begins() {
		e.Log, e.LogFrom = f.latest, f.from
		f.latest, f.from = "", 0 // the next command has another file, or none if it cannot be made
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	if f.events == nil {
		return nil
	}
	size, err := endLine(f.events)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	if (f.full || size+int64(len(line)) >= EventsLimit) && e.Kind != EventEnded {
		if f.full {
			return fmt.Errorf("event log: %w", errFull)
		}
		f.full = true
		line, err = json.Marshal(Event{
			Seq: e.Seq, PID: e.PID, Pool: e.Pool, Time: e.Time, Run: e.Run, Key: e.Key, Title: e.Title, Attempt: e.Attempt, Kind: EventWarning,
			Text: fmt.Sprintf("%s has the first %d MiB of the events, and the end of the run", EventsFile, EventsLimit>>20),
		})
	}
	if err == nil {
		_, err = f.events.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

var errFull = errors.New("it is full")

// Create opens a file of the folder for appending.
func (f *Folder) Create(name string) (io.WriteCloser, error) {
	if f == nil {
		return nil, errors.New("run folder: it is not open")
	}
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

// StopObeyed removes the request if there is one.
func (f *Folder) StopObeyed() error {
	if f == nil {
		return nil
	}
	if err := os.Remove(filepath.Join(f.dir, stopFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run folder: %w", err)
	}
	return nil
}

// StopRequested reports whether RequestStop was called for the run with this folder. The run may not have begun.
func StopRequested(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, stopFile))
	return dir != "" && err == nil
}

// AwaitStopRequest waits until StopRequested. It returns false if ctx ends first.
func AwaitStopRequest(ctx context.Context, dir string) bool {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for !StopRequested(dir) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// StopObeyed removes the request for a run that has not begun, and so has no Folder, and the run's folder.
func StopObeyed(r Record) error {
	err := (&Folder{dir: r.Dir}).StopObeyed()
	_ = os.Remove(r.Dir) // fails if the folder has other files
	return err
}

// Close closes the event log. It may be called several times.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.events == nil {
		return nil
	}
	err := f.events.Close()
	f.events = nil
	return err
}

// RequestStop asks the process that works the run to end it, and returns at once. The run's work is kept. RequestStop makes
// the folder of a run that still waits for its claim.
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

// ReadEvents calls each with the events of a run's folder, in order. It stops at the first error of each. It skips lines
// that are not events, such as one cut by a crash.
func ReadEvents(dir string, each func(Event) error) error {
	return ReadEventsFrom(dir, 0, func(e Event, _ int64) error { return each(e) })
}

// ReadEventsFrom is like ReadEvents, from an offset in bytes: 0, or the next of an earlier call, which is the end of that
// event. With it a reader can follow a run in progress.
func ReadEventsFrom(dir string, offset int64, each func(e Event, next int64) error) error {
	f, err := os.Open(filepath.Join(dir, EventsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer f.Close()
	offset, err = f.Seek(max(0, offset), io.SeekStart)
	if info, serr := f.Stat(); err == nil && serr == nil && info.Size() <= offset {
		return nil // no new events
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

// LogsLimit is the size in bytes from which on an issue's run folders are too many: only their newest stays whatever its size.
const LogsLimit int64 = 512 << 20

// Prune deletes the oldest run folders below dir: it keeps the newest keep, and of these the newest that have at most the given bytes
// together, but at least one. A folder with nothing but a request to stop does not count: no run has begun there.
func Prune(dir string, keep int, most int64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prune runs: %w", err)
	}
	kept := 0
	for _, e := range slices.Backward(entries) { // names begin with the time, so ReadDir lists the newest last
		at := filepath.Join(dir, e.Name())
		if !e.IsDir() || kept < keep && isOnlyStop(at) {
			continue
		}
		if kept < keep {
			if most -= sizeOf(at); most >= 0 || kept == 0 {
				kept++
				continue
			}
			keep = kept // older ones go, too
		}
		err = errors.Join(err, os.RemoveAll(at))
	}
	if err != nil {
		return fmt.Errorf("prune runs: %w", err)
	}
	return nil
}

// sizeOf returns the size of the readable files below a folder, in bytes.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil // what cannot be read does not count
	})
	return size
}

// isOnlyStop reports whether a request to stop is all that the folder has.
func isOnlyStop(dir string) bool {
	inside, err := os.ReadDir(dir)
	return err == nil && len(inside) == 1 && inside[0].Name() == stopFile
}
