package postgres_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
)

var server *fleettest.Server // shared by all tests; nil: PostgreSQL is not installed

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

// Each store is a separate project in one database.
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

// The tables refuse a row with impossible usage.
func TestAbsurdSpending(t *testing.T) {
	t.Parallel()
	db := open(t)
	today := fmt.Sprint(journal.Day(time.Now()))
	for _, row := range []string{
		today + ", 9223372036854775807, 0, 0, 0, 0", today + ", 0, 9223372036854775807, 0, 0, 0", today + ", 0, 0, -1, 0, 0", today + ", 0, 0, 0, -1, 0",
		today + ", 0, 0, 0, 0, 'NaN'", today + ", 0, 0, 0, 0, 'Infinity'", today + ", 0, 0, 0, 0, -1", "9223372036854775807, 1, 1, 1, 1, 1",
	} {
		_, err := db.Exec(t.Context(), "INSERT INTO ralph_spend (project, run, pool, day, input, output, cache_read, cache_write, cost_usd) VALUES ('p', 'bad', '', "+row+")")
		if err == nil || !strings.Contains(err.Error(), "ralph_spend_is_sane") {
			t.Errorf("%s: %v", row, err)
		}
	}
}

// A damaged record affects no other, and is logged once.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	db := open(t)
	var log strings.Builder
	s := &postgres.Store{DB: db, Project: "p", Machine: "m", Log: slog.New(slog.NewTextHandler(&log, nil))}
	r := journaltest.Full()
	r.Ended = time.Time{}
	other := r
	other.ID += "-2"
	if err := errors.Join(s.Save(t.Context(), r), s.Save(t.Context(), other)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`{"attempt": "three"}`, "{"} { // a record of another version, and invalid JSON
		if _, err := db.Exec(t.Context(), "UPDATE ralph_run SET record = $1 WHERE run = $2", text, r.ID); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := s.Find(t.Context(), journal.Query{Pool: r.Pool})
			if diff := cmp.Diff([]journal.Record{other}, got); diff != "" || err != nil {
				t.Errorf("%v, records (-want +got):\n%s", err, diff)
			}
		}
		if got, err := s.Elsewhere(t.Context(), r.Pool, []string{"m"}); err != nil || len(got) != 1 {
			t.Errorf("elsewhere: %+v, %v", got, err)
		}
	}
	if got, err := s.Totals(t.Context(), r.Pool, time.Time{}.AddDate(1800, 0, 0)); err != nil || len(got) != 1 || got[0].Runs != 1 {
		t.Errorf("totals: %+v, %v", got, err)
	}
	if n := strings.Count(log.String(), r.ID); n != 1 {
		t.Errorf("named %d times:\n%s", n, log.String())
	}
	without := &postgres.Store{DB: db, Project: "p"}
	if got, err := without.Find(t.Context(), journal.Query{Pool: r.Pool}); err != nil || len(got) != 1 {
		t.Errorf("without a log: %+v, %v", got, err)
	}
}

// If a database that lacks a run gets its usage later, the usage counts for the day on which the run ended.
func TestSpendingOfAnEarlierDay(t *testing.T) {
	t.Parallel()
	s := &postgres.Store{DB: open(t), Project: "p", Machine: "m"}
	now := time.Now()
	ended := now.AddDate(0, 0, -3)
	r := journal.Record{Run: journal.Run{ID: "a", Key: "k", Started: ended.Add(-time.Hour)}}
	r.Ended, r.Facts.Usage = ended, agents.Usage{Input: 3}
	if err := s.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if all, lately, err := s.Spent(t.Context(), "", ended, now); err != nil || all.Input != 3 || lately.Input != 0 {
		t.Errorf("%+v, today %+v, %v", all, lately, err)
	}
}
