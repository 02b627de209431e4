package postgres_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
)

var server *fleettest.Server // one for all tests; nil: there is no PostgreSQL

func TestMain(m *testing.M) {
	var end func()
	var err error
	if server, end, err = fleettest.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	end()
	os.Exit(status)
}

func open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db, err := pgxpool.New(t.Context(), server.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for range 2 {
		if _, err := db.Exec(t.Context(), postgres.Schema); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// Each store is a project of its own in one database.
func TestStore(t *testing.T) {
	t.Parallel()
	db := open(t)
	var n atomic.Int64
	t.Run("conformance", func(t *testing.T) { // ends before the database is closed
		journaltest.Run(t, func(*testing.T) journal.Store {
			return &postgres.Store{DB: db, Project: fmt.Sprint("project ", n.Add(1)), Machine: "m"}
		})
	})
	other := &postgres.Store{DB: db, Project: "p", Machine: "m"}
	if list, err := other.Find(t.Context(), journal.Query{Pool: "p"}); err != nil || len(list) > 0 {
		t.Errorf("another project's records are seen: %v, %v", list, err)
	}
}
