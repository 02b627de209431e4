package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A full disk is reported with the kernel's error: others cannot write there either.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := s.db.ExecContext(t.Context(), "PRAGMA max_page_count = 1"); err != nil { // the present number
		t.Fatal(err)
	}
	r := journal.Record{Run: journal.Run{ID: "r", Key: "k", Kind: journal.KindIssue, Started: time.Now(), Title: strings.Repeat("x", 1<<16)}}
	if err := s.Save(t.Context(), r); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "df ") {
		t.Errorf("%v", err)
	}
}
