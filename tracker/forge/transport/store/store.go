// Package store caches answers of a forge in the files of one folder.
package store

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	suffix     = ".answer"
	staleTemp  = time.Hour
	trimTo     = 8  // tenths of the limit that remain after a trim
	trimEvery  = 16 // trim after 1/trimEvery of the limit was written; also the limit of one entry
	folderMode = 0o700
)

// Entry is one cached answer.
type Entry struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	ContentType  string `json:"content_type"`
	Link         string `json:"link,omitempty"`
	Body         []byte `json:"body"`
}

// Store keeps entries as files in one folder, up to a number of bytes. Several processes may share the folder: files are
// replaced atomically, gzip's checksum detects damage, and a file that cannot be read counts as missing. A Store is safe for
// concurrent use.
type Store struct {
	root *os.Root
	max  int64
	temp atomic.Uint64

	mu      sync.Mutex
	written int64 // bytes since the last trim; guarded by mu
}

// Open opens or creates the folder for at most max bytes.
func Open(dir string, max int64) (*Store, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	// An existing folder may be readable by others, and answers about the project may be private.
	if err := os.Chmod(dir, folderMode); err != nil {
		return nil, fmt.Errorf("close the cache folder to others: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache folder: %w", err)
	}
	s := &Store{root: root, max: max}
	s.trim()
	return s, nil
}

// Get returns the entry with this name.
func (s *Store) Get(name string) (Entry, bool) {
	f, err := s.root.Open(name + suffix)
	if err != nil {
		return Entry{}, false
	}
	defer func() { _ = f.Close() }() // only read
	e, err := decodeEntry(f, s.max)
	if err != nil {
		return Entry{}, false
	}
	now := time.Now()
	_ = s.root.Chtimes(name+suffix, now, now) // a trim starts with the least recently used entry
	return e, true
}

// Put stores an entry. It skips one that takes too much of the space.
func (s *Store) Put(name string, e Entry) error {
	b, err := encodeEntry(e)
	if err != nil || int64(len(b)) > s.max/trimEvery {
		return err
	}
	temp := fmt.Sprintf("%s.%d.%d", name, os.Getpid(), s.temp.Add(1))
	if err := s.root.WriteFile(temp, b, 0o600); err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	if err := s.root.Rename(temp, name+suffix); err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	s.mu.Lock()
	s.written += int64(len(b))
	due := s.written > s.max/trimEvery
	if due {
		s.written = 0
	}
	s.mu.Unlock()
	if due {
		s.trim()
	}
	return nil
}

// Close closes the folder.
func (s *Store) Close() error { return s.root.Close() }

// trim removes temporary files of dead writers and, beyond the limit, the least recently used entries. It ignores failures:
// the next trim tries again.
func (s *Store) trim() {
	files, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return
	}
	var all []fs.FileInfo
	var total int64
	for _, f := range files {
		info, err := f.Info()
		switch {
		case err != nil || !info.Mode().IsRegular():
		case strings.HasSuffix(f.Name(), suffix):
			all = append(all, info)
			total += info.Size()
		case time.Since(info.ModTime()) > staleTemp:
			_ = s.root.Remove(f.Name())
		}
	}
	if total <= s.max {
		return
	}
	slices.SortFunc(all, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), strings.Compare(a.Name(), b.Name()))
	})
	for _, f := range all {
		if total <= s.max/10*trimTo {
			return
		}
		if s.root.Remove(f.Name()) == nil {
			total -= f.Size()
		}
	}
}

// encodeEntry encodes an entry as gzipped JSON.
func encodeEntry(e Entry) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	err = errors.Join(json.NewEncoder(z).Encode(e), z.Close())
	return b.Bytes(), err
}

func decodeEntry(r io.Reader, limit int64) (Entry, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return Entry{}, err
	}
	text, err := io.ReadAll(io.LimitReader(z, 2*limit+1)) // to the end, where the checksum is
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, err
	}
	if e.ETag == "" && e.LastModified == "" {
		return Entry{}, errors.New("a cached answer has no validator")
	}
	return e, nil
}
