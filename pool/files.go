package pool

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// runFiles is a run's folder: events.jsonl, raw agent streams, logs. Only the user can read it.
type runFiles struct {
	dir     string
	secrets *Secrets // are written to none of the files

	mu     sync.Mutex
	events *os.File // guarded by mu
}

const stopFile = "stop"

func newRunFiles(dir string, secrets *Secrets) (*runFiles, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "events.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	return &runFiles{dir: dir, secrets: secrets, events: f}, nil
}

// event appends one line. A log that cannot be written must not stop the work.
func (r *runFiles) event(e Event) {
	line, err := json.Marshal(r.secrets.event(e))
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events != nil {
		_, _ = r.events.Write(append(line, '\n'))
	}
}

// stream opens a file of the folder for the output of one command.
func (r *runFiles) stream(name string) (io.WriteCloser, error) {
	f, err := os.OpenFile(filepath.Join(r.dir, filepath.Base(name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	return r.secrets.stream(Capped(f)), nil
}

func (r *runFiles) stopRequested() bool {
	_, err := os.Lstat(filepath.Join(r.dir, stopFile))
	return err == nil
}

func (r *runFiles) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events != nil {
		_ = r.events.Close()
		r.events = nil
	}
}

// RequestStop asks the process that works the run to end it; its work is kept. It returns at once.
func RequestStop(r Record) error {
	f, err := os.OpenFile(filepath.Join(r.Dir, stopFile), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("stop %s: %w", r.Key, err)
	}
	return f.Close()
}

// prune deletes the oldest run folders of an issue, so that keep are left.
func prune(dir string, keep int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prune runs: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
	if len(entries) <= keep {
		return nil
	}
	for _, e := range entries[:len(entries)-keep] { // names begin with the time: ReadDir gives the oldest first
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("prune runs: %w", err)
		}
	}
	return nil
}
