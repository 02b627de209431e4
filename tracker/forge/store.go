package forge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	magic      = "ralph answer 1\n"
	suffix     = ".answer"
	maxHead    = 16 << 10 // bytes of an entry's head
	stale      = time.Hour
	trimTo     = 8  // tenths of the bound that are left after a trim
	trimEvery  = 16 // parts of the bound that may be written between two trims
	folderMode = 0o700
)

// entry is one remembered answer.
type entry struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	ContentType  string `json:"content_type"`
	Link         string `json:"link,omitempty"`
	Body         []byte `json:"-"`
}

// store keeps entries in files of one folder, at most so many bytes of them. Several processes may share the folder: a
// file is replaced as a whole, carries a checksum, and whatever cannot be read is not there.
type store struct {
	root *os.Root
	max  int64
	temp atomic.Uint64

	mu      sync.Mutex
	written int64 // since the last trim; guarded by mu
}

func openStore(dir string, max int64) (*store, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("make the folder for the forge's answers: %w", err)
	}
	// A folder that was there already may be open to others; what the project says may be private.
	if err := os.Chmod(dir, folderMode); err != nil {
		return nil, fmt.Errorf("close the folder for the forge's answers to others: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder for the forge's answers: %w", err)
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
	b, err := io.ReadAll(io.LimitReader(f, s.max+1))
	if err != nil {
		return entry{}, false
	}
	e, err := decodeEntry(b)
	if err != nil {
		return entry{}, false
	}
	now := time.Now()
	_ = s.root.Chtimes(name+suffix, now, now) // what was of use last is trimmed last
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

// trim removes leftovers of writers that died, and the entries longest out of use when all are too many. What cannot be
// removed now is removed another time.
func (s *store) trim() {
	files, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return
	}
	type kept struct {
		name string
		size int64
		used time.Time
	}
	var all []kept
	var total int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !strings.HasSuffix(f.Name(), suffix) {
			if time.Since(info.ModTime()) > stale {
				_ = s.root.Remove(f.Name())
			}
			continue
		}
		all = append(all, kept{f.Name(), info.Size(), info.ModTime()})
		total += info.Size()
	}
	if total <= s.max {
		return
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name)) })
	for _, k := range all {
		if total <= s.max/10*trimTo {
			return
		}
		if s.root.Remove(k.name) == nil {
			total -= k.size
		}
	}
}

// An entry's file is the magic line, the head's length, the head as JSON, the SHA-256 of head and body, and the body.
func encodeEntry(e entry) ([]byte, error) {
	head, err := json.Marshal(e)
	if err != nil || len(head) > maxHead {
		return nil, err
	}
	sum := checksum(head, e.Body)
	b := make([]byte, 0, len(magic)+4+len(head)+len(sum)+len(e.Body))
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(head)))
	b = append(b, head...)
	b = append(b, sum...)
	return append(b, e.Body...), nil
}

func decodeEntry(b []byte) (entry, error) {
	b, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(b) < 4 {
		return entry{}, errors.New("not a remembered answer")
	}
	n := int(binary.BigEndian.Uint32(b))
	b = b[4:]
	if n > maxHead || len(b) < n+sha256.Size {
		return entry{}, errors.New("a remembered answer was cut at " + strconv.Itoa(len(b)))
	}
	head, sum, body := b[:n], b[n:n+sha256.Size], b[n+sha256.Size:]
	if !bytes.Equal(sum, checksum(head, body)) {
		return entry{}, errors.New("a remembered answer does not have its checksum")
	}
	var e entry
	if err := json.Unmarshal(head, &e); err != nil {
		return entry{}, fmt.Errorf("read the head of a remembered answer: %w", err)
	}
	if e.ETag == "" && e.LastModified == "" {
		return entry{}, errors.New("a remembered answer has no validator")
	}
	e.Body = body
	return e, nil
}

func checksum(head, body []byte) []byte {
	h := sha256.New()
	_, _ = h.Write(head) // a hash takes everything
	_, _ = h.Write(body)
	return h.Sum(nil)
}
