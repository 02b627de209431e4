package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	journaltest.Run(t, func(t *testing.T) journal.Store { return open(t, filepath.Join(t.TempDir(), "state #1?.db")) })
}

// One process finds the records that another has saved in the same file, and so does one that opens it later.
func TestSharedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	first, second := open(t, path), open(t, path)
	if err := first.Save(t.Context(), journaltest.Full()); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sqlite.Store{second, open(t, path)} {
		got, err := s.Find(t.Context(), journal.Query{Pool: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]journal.Record{journaltest.Full()}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A file that this ralph cannot read is refused with advice, and stays unchanged.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ prepare, want string }{
		"newer":       {"PRAGMA user_version = 99", "newer ralph"},
		"older":       {"PRAGMA user_version = 2", "older ralph"},
		"no database": {"", "move it away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "state.db")
			if c.prepare == "" {
				if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				db, err := sql.Open("sqlite", path)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := db.ExecContext(t.Context(), c.prepare); err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sqlite.Open(t.Context(), path, nil)
			if err == nil {
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || cmp.Diff(before[24:], after[24:]) != "" && c.prepare == "" {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
}

// A damaged record is set aside, and affects no other.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := open(t, path)
	r := journaltest.Full()
	r.Ended = time.Time{}
	if err := s.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE runs SET record = '{'"); err != nil {
		t.Fatal(err)
	}
	other := journaltest.Full()
	other.ID += "-2"
	if err := s.Save(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Totals(t.Context(), "p", time.Time{}.AddDate(1800, 0, 0)); err != nil || len(got) != 1 || got[0].Runs != 1 {
		t.Errorf("totals: %+v, %v", got, err)
	}
	for range 2 {
		got, err := s.Find(t.Context(), journal.Query{Pool: "p"})
		if diff := cmp.Diff([]journal.Record{other}, got); diff != "" || err != nil {
			t.Errorf("%v, records (-want +got):\n%s", err, diff)
		}
	}
	var run, record string
	if err := db.QueryRowContext(t.Context(), "SELECT run, record FROM damaged").Scan(&run, &record); err != nil || run != r.ID || record != "{" {
		t.Errorf("set aside: %q, %q, %v", run, record, err)
	}
}
