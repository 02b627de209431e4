package sqlite_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/ralph-pool/ralph/pool/journal/sqlite"
)

// Processes that open a new journal at the same time wait for each other.
func TestNewJournalIsOpenedTogether(t *testing.T) {
	t.Parallel()
	for range 20 {
		path := filepath.Join(t.TempDir(), "state.db")
		var g errgroup.Group
		for range 8 {
			g.Go(func() error {
				s, err := sqlite.Open(t.Context(), path, nil)
				if err != nil {
					return err
				}
				return s.Close()
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}
