package fleet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
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

// fixed returns the source of an address that does not change.
func fixed(where string) func() (string, error) { return func() (string, error) { return where, nil } }

// open makes and opens an empty database.
func open(t testing.TB) *Database {
	t.Helper()
	d, err := OpenFrom(t.Context(), fixed(server.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func migrated(t testing.TB) *Database {
	t.Helper()
	d := open(t)
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	d := open(t)
	if err := d.Check(t.Context()); !errors.Is(err, ErrNotMigrated) {
		t.Errorf("an empty database: %v", err)
	}
	if done, err := d.Migrate(t.Context()); err != nil || len(done) < 2 {
		t.Errorf("done %q, %v", done, err)
	}
	if done, err := d.Migrate(t.Context()); err != nil || len(done) > 0 {
		t.Errorf("again: done %q, %v", done, err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A newer database stays unchanged, and the error names both versions and the database.
func TestMigrateLeavesANewerDatabase(t *testing.T) {
	t.Parallel()
	for _, newer := range []string{"UPDATE ralph_schema SET version = 99", "INSERT INTO river_migration (line, version) VALUES ('main', 99)"} {
		d := migrated(t)
		if _, err := d.exec(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		name := d.pool.Config().ConnConfig.Database
		err := d.Check(t.Context())
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "99") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", newer, err)
		}
		if done, err := d.Migrate(t.Context()); !errors.Is(err, ErrNewer) || len(done) > 0 {
			t.Errorf("%s: done %q, %v", newer, done, err)
		}
	}
}

// Other users of River may have versions of their own tables next to those of the queue.
func TestMigrateBesideAnotherLine(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	if _, err := d.exec(t.Context(), "INSERT INTO river_migration (line, version) VALUES ('other', 99)"); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := d.exec(t.Context(), "DELETE FROM river_migration WHERE line = 'main' AND version > 1"); err != nil {
		t.Fatal(err)
	}
	if err := d.Check(t.Context()); !errors.Is(err, ErrNotMigrated) {
		t.Errorf("the queue's tables are older: %v", err)
	}
}

// Tables of an earlier version cannot be migrated, and do not count as up to date.
func TestMigrateRefusesAnOlderDatabase(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	if _, err := d.exec(t.Context(), "UPDATE ralph_schema SET version = 3"); err != nil {
		t.Fatal(err)
	}
	if done, err := d.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "version 3") || len(done) > 0 {
		t.Errorf("done %q, %v", done, err)
	}
	if err := d.Check(t.Context()); !errors.Is(err, ErrNotMigrated) {
		t.Error(err)
	}
}

// A table that somebody has dropped is not made again without its rows.
func TestMigrateNamesMissingTables(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"ralph_lease", "ralph_run", "river_leader", "river_notification"} {
		d := migrated(t)
		if _, err := d.exec(t.Context(), "DROP TABLE "+table); err != nil {
			t.Fatal(err)
		}
		if err := d.Check(t.Context()); !errors.Is(err, ErrIncomplete) || !strings.HasSuffix(err.Error(), ": "+table) {
			t.Errorf("%s: %v", table, err)
		}
		if done, err := d.Migrate(t.Context()); !errors.Is(err, ErrIncomplete) || len(done) > 0 {
			t.Errorf("%s: done %q, %v", table, done, err)
		}
	}
}

func TestMigrateByAllAtOnce(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			d, err := OpenFrom(t.Context(), fixed(where))
			if err != nil {
				t.Error(err)
				return
			}
			defer d.Close()
			if _, err := d.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
			if err := d.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// A new connection uses the present password, and no error shows that or an earlier one. If the address cannot be read, it
// uses the initial password.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	sep := map[bool]string{true: "&", false: "?"}[strings.Contains(where, "?")]
	address, unread := where+sep+"password=first-secret", error(nil)
	d, err := OpenFrom(t.Context(), func() (string, error) { return address, unread })
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	password := func(want string) {
		t.Helper()
		c := d.pool.Config()
		if err := c.BeforeConnect(t.Context(), c.ConnConfig); err != nil || c.ConnConfig.Password != want {
			t.Errorf("%q, %v; want %q", c.ConnConfig.Password, err, want)
		}
	}
	password("first-secret")
	address = where + sep + "password=second-secret"
	password("second-secret")
	address = "postgres://half-writ:en:address"
	password("first-secret")
	address, unread = where+sep+"password=second-secret", errors.New("the file is gone")
	password("first-secret")
	if got := d.hide(errors.New("first-secret second-secret")).Error(); got != "xxxxx xxxxx" {
		t.Errorf("shown: %s", got)
	}
}

// Errors of PostgreSQL come with advice.
func TestRemedy(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	for sql, want := range map[string]string{
		"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; UPDATE ralph_schema SET version = version": "standby",
		"SET ROLE pg_monitor; DELETE FROM ralph_schema":                                                   "owns",
	} {
		conn, err := d.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		one := conn.Hijack()
		for _, s := range strings.Split(sql, "; ") {
			_, err = one.Exec(t.Context(), s)
		}
		if err == nil || !strings.Contains(Remedy(d.hide(err)), want) {
			t.Errorf("%s: %v; %s", sql, err, Remedy(err))
		}
		_ = one.Close(t.Context())
	}
}

// The address asks for TLS, and the server does not support it.
func TestRemedyWithoutTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 8)) // the request for TLS
			_, _ = c.Write([]byte("N"))
			_ = c.Close()
		}
	}()
	if got := Remedy(nil); got != "" {
		t.Errorf("without an error: %q", got)
	}
	for mode, want := range map[string]bool{"require": true, "verify-full": true, "prefer": false} {
		_, err := OpenFrom(t.Context(), fixed("postgres://ralph@"+l.Addr().String()+"/ralph?sslmode="+mode))
		if err == nil || strings.Contains(Remedy(err), "sslmode=disable") != want {
			t.Errorf("%s: %v; %s", mode, err, Remedy(err))
		}
	}
}

// Errors about an address do not show its password.
func TestPasswordIsHidden(t *testing.T) {
	t.Parallel()
	for _, where := range []string{
		"postgres://ralph:hunter2secret@127.0.0.1:1/ralph?connect_timeout=2",
		"postgres://ralph:hunter2secret@127.0.0.1:x/ralph",
		"postgres://ralph:hunter2secret/x@127.0.0.1:1/ralph",
		"user=ralph password=hunter2secret host=127.0.0.1 port=1",
		"user=ralph password='hunter2secret host=127.0.0.1 port=1",
		"mysql://ralph:hunter2secret@127.0.0.1/ralph",
		"postgres://ralph:hunter2secret@127.0.0.1:1/ralph?sslmode=hunter2secret",
		"postgres://ralph:hunter2secret@127.0.0.1:1/ralph?target_session_attrs=hunter2secret",
	} {
		_, err := OpenFrom(t.Context(), fixed(where))
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", where, err)
		}
		if err != nil && strings.Count(err.Error(), "connection refused") > 1 {
			t.Errorf("%s: said twice: %v", where, err)
		}
	}
}

// A connection has ten seconds unless the address sets another time: TLS to a distant server takes more than one second.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	address, sep := server.Database(t), "?"
	if strings.Contains(address, "?") {
		sep = "&"
	}
	for query, want := range map[string]time.Duration{
		"": 10 * time.Second, "connect_timeout=0": 10 * time.Second, "connect_timeout=2": 2 * time.Second, "connect_timeout=99": callTime,
	} {
		d, err := OpenFrom(t.Context(), fixed(address+sep+query))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.pool.Config().ConnConfig.ConnectTimeout; got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
		d.Close()
	}
}

// The database ends a transaction whose machine has fallen silent, and releases its locks.
func TestSilentTransactionsEnd(t *testing.T) {
	t.Parallel()
	d, err := OpenFrom(t.Context(), fixed(server.Database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var limit string
	if err := d.pool.QueryRow(t.Context(), "SHOW idle_in_transaction_session_timeout").Scan(&limit); err != nil || limit != callTime.String() {
		t.Errorf("%q, %v, want %s", limit, err, callTime)
	}
}

func TestMayTake(t *testing.T) {
	t.Parallel()
	type m = map[string]int
	for _, c := range []struct {
		name         string
		limit        int
		held, wanted m
		want         bool
	}{
		{"free", 1, nil, m{"a": 1}, true},
		{"full", 1, m{"b": 1}, m{"a": 1, "b": 1}, false},
		{"who is alone may have all", 4, m{"a": 3}, m{"a": 9}, true},
		{"half", 4, m{"a": 2}, m{"a": 9, "b": 9}, false},
		{"what the other leaves", 4, m{"a": 2}, m{"a": 9, "b": 1}, true},
		{"and no more", 4, m{"a": 3}, m{"a": 9, "b": 1}, false},
		{"an odd one goes to the first", 3, m{"a": 1}, m{"a": 9, "b": 9}, true},
		{"more projects than slots", 1, nil, m{"a": 9, "b": 9, "c": 9}, true},
		{"all have what they want", 9, m{"a": 1}, m{"a": 2, "b": 1}, true},
		{"first come, first served", 4, m{"a": 3}, nil, true},
		{"up to the limit", 4, m{"a": 4}, nil, false},
	} {
		if got := mayTake(c.limit, "a", c.held, c.wanted); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// If many ask at once, only as many as the limit get a lease.
func TestLeases(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	type answer struct {
		*leases
		ok  bool
		err error
	}
	answers := make(chan answer)
	for range 20 {
		go func() {
			l, ok, err := d.takeLeases(t.Context(), "p", "", "h", time.Minute, scope{name: "s", limit: 3}, scope{name: "of all", limit: 7})
			answers <- answer{l, ok, err}
		}()
	}
	var got []*leases
	for range 20 {
		a := <-answers
		if a.err != nil {
			t.Error(a.err)
		}
		if a.ok {
			got = append(got, a.leases)
		}
	}
	if len(got) != 3 {
		t.Fatalf("%d leases, want 3", len(got))
	}
	if n := number(t, d, "SELECT count(*) FROM ralph_lease"); n != 6 {
		t.Errorf("%d rows: a refused one leaves some", n)
	}
	if err := got[0].free(t.Context()); err != nil {
		t.Error(err)
	}
	if _, ok, err := d.takeLeases(t.Context(), "p", "", "h", time.Minute, scope{name: "s", limit: 3}); err != nil || !ok {
		t.Errorf("not taken again: %v", err)
	}
	if held, err := got[0].renew(t.Context()); err != nil || held {
		t.Errorf("a lease that another has now is renewed: %t, %v", held, err)
	}
	if _, ok, err := d.takeLeases(t.Context(), "p", "", "h", time.Minute, scope{name: "s", limit: 3}, scope{name: "other", limit: 1}); err != nil || ok {
		t.Errorf("a full scope has room: %v", err)
	}
}

// A lease ends after its TTL, unless nobody could renew it because the database was down.
func TestLeaseExpires(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	s := scope{name: "s", limit: 1}
	first, ok, err := d.takeLeases(t.Context(), "p", "", "h", time.Hour, s)
	if err != nil || !ok {
		t.Fatal(err)
	}
	age := func(by time.Duration) {
		if _, err := d.exec(t.Context(), "UPDATE ralph_lease SET expires_at = now() - make_interval(secs => $1)", by.Seconds()); err != nil {
			t.Fatal(err)
		}
	}
	age(2 * time.Hour)
	if _, ok, err := d.takeLeases(t.Context(), "p", "", "h", time.Hour, s); err != nil || ok {
		t.Errorf("the server is younger than a ttl, and still a lease is taken away: %v", err)
	}
	first.ttl = time.Microsecond // as if the server had been up for longer
	if _, ok, err := d.takeLeases(t.Context(), "p", "", "h", first.ttl, s); err != nil || !ok {
		t.Errorf("an expired lease is not taken over: %v", err)
	}
	first.ttl = time.Hour
	if held, err := first.renew(t.Context()); err != nil || held {
		t.Errorf("the first holder still has it: %t, %v", held, err)
	}
}

func number(t *testing.T, d *Database, sql string, args ...any) (n int) {
	t.Helper()
	if err := d.pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestQueueOf(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"shop", "Shop", "a.b", "a-b", "a_b", "x", strings.Repeat("long.Name", 7), "-", "9", "ralph-"} {
		q := queueOf(name)
		if other, twice := seen[q]; twice {
			t.Errorf("%s and %s share the queue %s", name, other, q)
		}
		seen[q] = name
		if p := insertion(row{Project: name, Key: "k"}, priorityIssue); p.InsertOpts.Queue != q || len(q) > 64 {
			t.Errorf("%s: queue %q", name, q)
		}
	}
}
