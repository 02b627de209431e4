// Package seen keeps the contents of refs' files, because a repository can have thousands of refs that do not move. Git replaces the
// file of a ref; whoever writes into it changes a time that no program can set. Package worktree/git uses it.
package seen

import (
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	minAge = 100 * time.Millisecond // age from which a file's time reveals every change of the file
	most   = 1 << 14                // files beyond these are read each time
)

// Files holds contents of files that were read. The zero value is ready for use, also concurrent use. Nil holds none.
type Files struct {
	mu    sync.Mutex
	known map[string]file // guarded by mu; by path
}

type file struct {
	stat    unix.Stat_t // as it was before the content was read
	content string
}

// Read returns the content of the file at path. If it may have changed since it was last read, it calls read.
func (s *Files) Read(path string, read func(path string) ([]byte, fs.FileInfo, error)) (string, error) {
	var now unix.Stat_t
	if s == nil || unix.Lstat(path, &now) != nil {
		content, _, err := read(path)
		return string(content), err
	}
	s.mu.Lock()
	known, ok := s.known[path]
	s.mu.Unlock()
	if was := known.stat; ok && was.Ino == now.Ino && was.Dev == now.Dev && was.Ctim == now.Ctim && was.Mode == now.Mode {
		return known.content, nil
	}
	began := time.Now()
	content, _, err := read(path)
	if err == nil && began.Sub(time.Unix(now.Ctim.Unix())) >= minAge {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.known == nil || len(s.known) >= most {
			s.known = map[string]file{}
		}
		s.known[path] = file{now, string(content)}
	}
	return string(content), err
}
