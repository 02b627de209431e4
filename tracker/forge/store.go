package forge

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
	trimEvery  = 16 // fraction of the limit that may be written between two trims
	folderMode = 0o700
)

// entry is one cached answer.
type entry struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	ContentType  string `json:"content_type"`
	Link         string `json:"link,omitempty"`
	Body         []byte `json:"body"`
}

// store keeps entries in the files of one folder, up to a number of bytes. Several processes may share the folder: a
// file is replaced as a whole, gzip's checksum protects it, and a file that cannot be read does not exist.
type store struct {
	root *os.Root
	max  int64
	temp atomic.Uint64

	mu      sync.Mutex
	written int64 // since the last trim; guarded by mu
}

func openStore(dir string, max int64) (*store, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	// An existing folder may be open to others, and answers about the project may be private.
	if err := os.Chmod(dir, folderMode); err != nil {
		return nil, fmt.Errorf("close the cache folder to others: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the cache folder: %w", err)
	}
	s := &store{root: root, max: max}
	s.trim()
	return s, nil
}

func (s *store) get(name string) (entry, bool) {
	f, err := s.root.Open(name + suffix)
	if err != nil {
		return entry{}, false
	}
	defer func() { _ = f.Close() }() // only read
	e, err := decodeEntry(f, s.max)
	if err != nil {
		return entry{}, false
	}
	now := time.Now()
	_ = s.root.Chtimes(name+suffix, now, now) // the least recently used is trimmed first
	return e, true
}

func (s *store) put(name string, e entry) error {
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

// trim removes temporary files of writers that died, and the least recently used entries when all are too many. A file
// that cannot be removed now is removed another time.
func (s *store) trim() {
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

// encodeEntry writes gzipped JSON.
func encodeEntry(e entry) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	err = errors.Join(json.NewEncoder(z).Encode(e), z.Close())
	return b.Bytes(), err
}

func decodeEntry(r io.Reader, limit int64) (entry, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return entry{}, err
	}
	text, err := io.ReadAll(io.LimitReader(z, 2*limit+1)) // to the end, where the checksum is
	if err != nil {
		return entry{}, err
	}
	var e entry
	if err := json.Unmarshal(text, &e); err != nil {
		return entry{}, err
	}
	if e.ETag == "" && e.LastModified == "" {
		return entry{}, errors.New("a cached answer has no validator")
	}
	return e, nil
}
