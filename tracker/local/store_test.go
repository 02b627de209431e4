package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/tracker"
)

// An edit by a person between ralph's read and its write is part of the result.
func TestUpdateKeepsEditMadeMeanwhile(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(path, text string) error{
		"in place": func(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) },
		"renamed": func(path, text string) error {
			if err := os.WriteFile(path+".swp", []byte(text), 0o644); err != nil {
				return err
			}
			return os.Rename(path+".swp", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "a.md", "---\nlabels: [x]\n---\nold\n")
			path := filepath.Join(dir, "a.md")
			tries := 0
			err := open(t, dir).update(t.Context(), "a", func(raw []byte) ([]byte, error) {
				if tries++; tries < 4 {
					if err := save(path, fmt.Sprintf("---\nlabels: [x]\n---\nnew %d\n", tries)); err != nil {
						return nil, err
					}
				}
				return applyChange(raw, tracker.Change{AddLabels: []string{"z"}})
			})
			if err != nil || tries != 4 {
				t.Errorf("update: %v after %d tries", err, tries)
			}
			if got, want := read(t, path), "---\nlabels: [x, z]\n---\nnew 3\n"; got != want {
				t.Errorf("file is %q, want %q", got, want)
			}
		})
	}
}

// An empty file is about to be written: ralph waits for its new text, which gets no front matter.
func TestUpdateWaitsForText(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.md", "")
	write(t, dir, "b.md", "# Text\n")
	tr := open(t, dir)
	err := tr.Change(t.Context(), "a", tracker.Change{Close: true})
	if want := filepath.Join(dir, "a.md") + ":1: is empty; write the issue or remove the file"; err == nil || err.Error() != want {
		t.Errorf("Change = %v, want %q", err, want)
	}
	if got := read(t, filepath.Join(dir, "a.md")); got != "" {
		t.Errorf("file is %q", got)
	}
	calls := 0
	err = tr.update(t.Context(), "b", func(raw []byte) ([]byte, error) {
		if calls++; calls == 1 { // emptied after it was read, and filled again before the next read
			write(t, dir, "b.md", "")
			go func() { _ = os.WriteFile(filepath.Join(dir, "b.md"), []byte("# New\n"), 0o644) }()
		}
		return applyChange(raw, tracker.Change{Close: true})
	})
	if got, want := read(t, filepath.Join(dir, "b.md")), "---\nstate: closed\n---\n\n# New\n"; err != nil || got != want {
		t.Errorf("update: %v, file is %q, want %q", err, got, want)
	}
}

func TestUpdateGivesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.md", "0")
	n := 0
	err := open(t, dir).update(t.Context(), "a", func(raw []byte) ([]byte, error) {
		n++
		write(t, dir, "a.md", fmt.Sprint(n))
		return append(raw, '!'), nil
	})
	if !errors.Is(err, errChanged) {
		t.Errorf("update = %v, want errChanged", err)
	}
	if got := read(t, filepath.Join(dir, "a.md")); got != fmt.Sprint(maxTries) {
		t.Errorf("file is %q, want the other program's last text", got)
	}
	noTemps(t, dir)
}

// The replaced file is checked again, and swapped back if it is not the one that was read.
func TestReplaceRefusesWhatItHasNotRead(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(tr *Tracker, root *os.Root) error{
		"before the swap": func(tr *Tracker, root *os.Root) error {
			_, info, err := readFile(root, "a.md")
			if err != nil {
				return err
			}
			return tr.replace(root, "a.md", info, []byte("read"), []byte("ours"))
		},
		"after the swap": func(_ *Tracker, root *os.Root) error {
			if err := root.WriteFile("temp", []byte("ours"), 0o600); err != nil {
				return err
			}
			return errors.Join(swapIn(root, "temp", "a.md", []byte("read")), root.Remove("temp"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "a.md", "theirs")
			tr := open(t, dir)
			root, err := tr.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if err := replace(tr, root); !errors.Is(err, errChanged) {
				t.Errorf("replace = %v, want errChanged", err)
			}
			if got := read(t, filepath.Join(dir, "a.md")); got != "theirs" {
				t.Errorf("file is %q", got)
			}
			noTemps(t, dir)
		})
	}
}

func TestUpdateKeepsModeAndCleansUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.md")
	write(t, dir, "a.md", "x")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	write(t, dir, ".ralph-OLD.tmp", "remains of a crash")
	write(t, dir, ".ralph-NEW.tmp", "another ralph is at it")
	if err := os.Chtimes(filepath.Join(dir, ".ralph-OLD.tmp"), time.Time{}, time.Now().Add(-2*staleTemp)); err != nil {
		t.Fatal(err)
	}
	tr := open(t, dir)
	if err := tr.Change(t.Context(), "a", tracker.Change{Close: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.List(t.Context(), tracker.Query{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".ralph-*.tmp"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != ".ralph-NEW.tmp" {
		t.Errorf("temporary files left: %q, %v", left, err)
	}
}

// The error of a failed write does not name the temporary file, which means nothing to people.
func TestFailedWriteNamesNoTemporaryFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.md", "x")
	tr := open(t, dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := root.Stat("a.md")
	if err == nil {
		err = root.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.replace(root, "a.md", info, []byte("x"), []byte("y")); !errors.Is(err, os.ErrClosed) || strings.ContainsAny(err.Error(), ".\n") {
		t.Errorf("replace = %v", err)
	}
}

// Several trackers, like several processes, share one folder through the lock file.
func TestSharedFolder(t *testing.T) {
	t.Parallel()
	for name, lockDir := range map[string]string{"lock in the folder": "", "lock elsewhere": filepath.Join(t.TempDir(), "locks")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "a.md", "Text.\n")
			var wg sync.WaitGroup
			for n := range 6 {
				tr, err := New(Config{Dir: dir, LockDir: lockDir})
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					for i := range 5 {
						if err := tr.Change(t.Context(), "a", tracker.Change{AddLabels: []string{fmt.Sprintf("l-%d-%d", n, i)}}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			i, err := open(t, dir).Get(t.Context(), "a")
			if err != nil || len(i.Labels) != 30 {
				t.Errorf("%d labels (%v), %v, want 30", len(i.Labels), i.Labels, err)
			}
			noTemps(t, dir)
		})
	}
}

func TestLockHonoursContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a.md", "x")
	unlock, err := open(t, dir).lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	other := open(t, dir)
	done := make(chan error)
	go func() { done <- other.Change(ctx, "a", tracker.Change{Close: true}) }()
	cancel(cause)
	if err := <-done; !errors.Is(err, cause) {
		t.Errorf("Change = %v, want the cause", err)
	}
	unlock()
	if err := other.Change(t.Context(), "a", tracker.Change{Close: true}); err != nil {
		t.Errorf("Change after the lock is free: %v", err)
	}
}

// A reader never sees half a file while ralph writes.
func TestReadersSeeWholeFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	body := strings.Repeat("line\n", 5000)
	write(t, dir, "a.md", "---\nlabels: [x]\n---\n"+body)
	tr := open(t, dir)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20 {
			if err := tr.Report(t.Context(), "a", tracker.Report{Run: fmt.Sprint("run-", i), Body: "Done."}); err != nil {
				t.Error(err)
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		raw, err := os.ReadFile(filepath.Join(dir, "a.md"))
		if err != nil || !bytes.Contains(raw, []byte(body)) {
			t.Fatalf("read %d bytes, %v: half a file", len(raw), err)
		}
	}
	<-done
}

func noTemps(t *testing.T, dir string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(dir, ".ralph-*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %q, %v", left, err)
	}
}
