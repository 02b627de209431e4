package webhook

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// remembered is how many of the latest deliveries of a project are known.
const remembered = 1000

// memory knows the latest deliveries of a project, also after a restart: by their ids, and by their bodies, because a
// signature need not cover the id. A file has one hash a line, the latest last. It is safe for concurrent use.
type memory struct {
	mu    sync.Mutex
	dir   string          // guarded by mu; of the file that was read
	order []string        // guarded by mu; the latest last
	known map[string]bool // guarded by mu
	lines int             // guarded by mu; of the file
}

// add notes a delivery and reports whether it is new. With an error it is known to this process only.
func (m *memory) add(dir, id string, body []byte) (fresh bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dir != dir {
		err = m.load(dir)
	}
	hashes := []string{hash("body", string(body))}
	if id != "" {
		hashes = append(hashes, hash("id", id))
	}
	if slices.ContainsFunc(hashes, func(h string) bool { return m.known[h] }) {
		return false, err
	}
	m.note(hashes)
	if m.lines += len(hashes); m.lines > 4*remembered {
		m.lines = len(m.order)
		return true, errors.Join(err, m.rewrite())
	}
	return true, errors.Join(err, m.store(hashes))
}

func hash(kind, text string) string {
	sum := sha256.Sum256([]byte(kind + "\n" + text))
	return hex.EncodeToString(sum[:])
}

// note needs m.mu.
func (m *memory) note(hashes []string) {
	for _, h := range hashes {
		m.known[h] = true
		m.order = append(m.order, h)
	}
	for len(m.order) > 2*remembered {
		delete(m.known, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *memory) file() string { return filepath.Join(m.dir, "deliveries") }

// load reads the file. A line that is torn is left out. It needs m.mu.
func (m *memory) load(dir string) error {
	m.dir, m.order, m.known, m.lines = dir, nil, map[string]bool{}, 0
	f, err := os.Open(m.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m.lines++; len(lines.Text()) == 2*sha256.Size && !m.known[lines.Text()] {
			m.note([]string{lines.Text()})
		}
	}
	return lines.Err()
}

// store appends to the file, behind the end of a line that may be torn. It needs m.mu.
func (m *memory) store(hashes []string) error {
	f, err := os.OpenFile(m.file(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n" + strings.Join(hashes, "\n") + "\n")
	return errors.Join(err, f.Close())
}

// rewrite leaves out what is forgotten. It needs m.mu.
func (m *memory) rewrite() error {
	temp := m.file() + ".new"
	if err := os.WriteFile(temp, []byte(strings.Join(m.order, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, m.file())
}
