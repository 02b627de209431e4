package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
)

// spoil overwrites the first page of a table or index, in a file that nobody has open.
func spoil(t *testing.T, path, name string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var page, size int64
	err = db.QueryRowContext(t.Context(), "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?", name).Scan(&page, &size)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, size), (page-1)*size); err != nil {
		t.Fatal(err)
	}
}

// filled makes a journal with one run, and closes it.
func filled(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	if err := s.Save(t.Context(), journaltest.Full()); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("a whole file: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// Damage that shows only after opening is reported with the path and advice, by every call.
func TestDamagedPages(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*testing.T, *sqlite.Store) error{
		"find": func(t *testing.T, s *sqlite.Store) error {
			_, err := s.Find(t.Context(), journal.Query{Pool: "p"})
			return err
		},
		"check": func(t *testing.T, s *sqlite.Store) error { return s.Check(t.Context()) },
		"save":  func(t *testing.T, s *sqlite.Store) error { return s.Save(t.Context(), journaltest.Full()) },
		"totals": func(t *testing.T, s *sqlite.Store) error {
			_, err := s.Totals(t.Context(), "p", journaltest.Full().Started)
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filled(t)
			spoil(t, path, "runs")
			err := call(t, open(t, path))
			if err == nil || !strings.Contains(err.Error(), "it is damaged: move it away") || strings.Count(err.Error(), path) != 1 {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A damaged record that cannot be set aside, because an index is damaged too, is reported like other damage.
func TestNotSetAside(t *testing.T) {
	t.Parallel()
	path := filled(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE runs SET record = '{'"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, "runs_by_key")
	s := open(t, path)
	_, err = s.Find(t.Context(), journal.Query{Pool: "p", Run: journaltest.Full().ID})
	if err == nil || !strings.Contains(err.Error(), "aside") || !strings.Contains(err.Error(), "it is damaged: move it away") || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

// A folder in the place of the file is not reported as a full disk.
func TestFolderAsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, nil)
	if err == nil || !strings.Contains(err.Error(), "it is a folder: move it away") || strings.Contains(err.Error(), "df ") {
		t.Errorf("error %v", err)
	}
}

// A missing folder is not reported as a full disk either.
func TestFolderMissing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	_, err := sqlite.Open(t.Context(), filepath.Join(dir, "state.db"), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "; create its folder first: mkdir -p "+dir) {
		t.Errorf("error %v", err)
	}
}
