package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
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

// open is an empty database.
func open(t testing.TB) *Database {
	t.Helper()
	d, err := Open(t.Context(), server.Database(t))
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

// A newer database is left alone, and the error names both versions and the database.
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

func TestMigrateByAllAtOnce(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			d, err := Open(t.Context(), where)
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

// A new connection has the password of the moment, and no error shows that or an earlier one. With what cannot be read
// it has the one of the start.
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

// What PostgreSQL refuses says what to do.
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

// No error of an address shows its password.
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
		_, err := Open(t.Context(), where)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", where, err)
		}
		if err != nil && strings.Count(err.Error(), "connection refused") > 1 {
			t.Errorf("%s: said twice: %v", where, err)
		}
	}
}

// A connection has ten seconds, unless the address says otherwise: TLS to a server far away takes more than one.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	address, sep := server.Database(t), "?"
	if strings.Contains(address, "?") {
		sep = "&"
	}
	for query, want := range map[string]time.Duration{
		"": 10 * time.Second, "connect_timeout=0": 10 * time.Second, "connect_timeout=2": 2 * time.Second, "connect_timeout=99": callTime,
	} {
		d, err := Open(t.Context(), address+sep+query)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.pool.Config().ConnConfig.ConnectTimeout; got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
		d.Close()
	}
}

// The database ends a transaction whose machine has fallen silent, and with it what that had locked.
func TestSilentTransactionsEnd(t *testing.T) {
	t.Parallel()
	d, err := Open(t.Context(), server.Database(t))
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

// Of many that ask at once as many get a lease as there may be.
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
			l, ok, err := d.take(t.Context(), "p", "", "h", time.Minute, scope{name: "s", limit: 3}, scope{name: "of all", limit: 7})
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
	if _, ok, err := d.take(t.Context(), "p", "", "h", time.Minute, scope{name: "s", limit: 3}); err != nil || !ok {
		t.Errorf("not taken again: %v", err)
	}
	if held, err := got[0].renew(t.Context()); err != nil || held {
		t.Errorf("a lease that another has now is renewed: %t, %v", held, err)
	}
	if _, ok, err := d.take(t.Context(), "p", "", "h", time.Minute, scope{name: "s", limit: 3}, scope{name: "other", limit: 1}); err != nil || ok {
		t.Errorf("a full scope has room: %v", err)
	}
}

// A lease ends with its TTL, but for one that nobody could renew: the database was down.
func TestLeaseExpires(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	s := scope{name: "s", limit: 1}
	first, ok, err := d.take(t.Context(), "p", "", "h", time.Hour, s)
	if err != nil || !ok {
		t.Fatal(err)
	}
	age := func(by time.Duration) {
		if _, err := d.exec(t.Context(), "UPDATE ralph_lease SET expires_at = now() - make_interval(secs => $1)", by.Seconds()); err != nil {
			t.Fatal(err)
		}
	}
	age(2 * time.Hour)
	if _, ok, err := d.take(t.Context(), "p", "", "h", time.Hour, s); err != nil || ok {
		t.Errorf("the server is younger than a ttl, and still a lease is taken away: %v", err)
	}
	first.ttl = time.Microsecond // as if the server had been up for longer
	if _, ok, err := d.take(t.Context(), "p", "", "h", first.ttl, s); err != nil || !ok {
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

// lines is a log.
type lines struct {
	slog.Handler
	got chan string
}

func (l lines) Handle(_ context.Context, r slog.Record) error {
	l.got <- r.Message
	return nil
}

// An outage of the database is one line when it begins, and one when it is over.
func TestOutageIsTwoLines(t *testing.T) {
	t.Parallel()
	own, end, err := fleettest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	d, err := Open(t.Context(), own.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := lines{slog.NewTextHandler(io.Discard, nil), make(chan string, 1000)}
	f, err := Start(t.Context(), Config{Database: d, Work: true, TTL: time.Second, Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := f.client.Queues().Add(queueOf(strconv.Itoa(n)), river.QueueConfig{MaxWorkers: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.exec(t.Context(), "CHECKPOINT"); err != nil { // a server for tests forgets in a crash what is younger
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		select {
		case got := <-log.got:
			if got != want {
				t.Errorf("logged %q, want %q", got, want)
			}
		case <-time.After(time.Minute): // only a failing test takes that long
			t.Fatalf("not logged: %s", want)
		}
	}
	for range 2 {
		if err := own.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		next("the database is away; what is being worked goes on")
		if err := f.Held(""); !errors.Is(err, ErrAway) {
			t.Errorf("away: %v", err)
		}
		if err := own.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		next("the database is back")
		if err := f.Held(""); err != nil {
			t.Errorf("back: %v", err)
		}
	}
	f.Stop()
	if len(log.got) > 0 {
		t.Errorf("one more line: %s", <-log.got)
	}
}

// Where the server is there again and refuses this machine, the log says that, too: it does not end by itself.
func TestOutageThatIsRefused(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := outage{log: slog.New(slog.NewTextHandler(&out, nil))}
	refused := fmt.Errorf("connect: %w", &pgconn.PgError{Code: "28P01", Message: "wrong password"})
	for _, c := range []struct {
		err   error
		lines int
	}{{errors.New("gone"), 1}, {errors.New("still gone"), 1}, {refused, 2}, {refused, 2}, {errors.New("gone"), 2}, {nil, 3}, {refused, 4}, {refused, 4}} {
		if o.note(c.err); strings.Count(out.String(), "\n") != c.lines {
			t.Errorf("%v: want %d lines:\n%s", c.err, c.lines, out.String())
		}
	}
	if n := strings.Count(out.String(), "wrong password"); n != 2 {
		t.Errorf("%d lines name the refusal:\n%s", n, out.String())
	}
}

// A database that answers and takes no writes is away, too: a standby, or one that somebody has emptied.
func TestDatabaseWithoutWritesIsAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ breaks, repairs string }{
		{"ALTER DATABASE %s SET default_transaction_read_only = on", "SET default_transaction_read_only = off; ALTER DATABASE %s RESET ALL"},
		{"ALTER TABLE ralph_machine RENAME TO away", "ALTER TABLE away RENAME TO ralph_machine"},
	} {
		d := migrated(t)
		log := lines{slog.NewTextHandler(io.Discard, nil), make(chan string, 1000)}
		f, err := Start(t.Context(), Config{Database: d, Work: true, TTL: time.Second, Log: slog.New(log)})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			sql, want string
			away      bool
		}{{c.breaks, "the database is away; what is being worked goes on", true}, {c.repairs, "the database is back", false}} {
			if strings.Contains(step.sql, "%s") {
				step.sql = fmt.Sprintf(step.sql, d.pool.Config().ConnConfig.Database)
			}
			own, err := pgx.ConnectConfig(t.Context(), d.pool.Config().ConnConfig) // those of the pool are ended by this
			if err != nil {
				t.Fatal(err)
			}
			for _, sql := range strings.Split(step.sql+"; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()", "; ") {
				if _, err := own.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			_ = own.Close(t.Context())
			for got := ""; got != step.want; {
				select {
				case got = <-log.got:
				case <-time.After(time.Minute): // only a failing test takes that long
					t.Fatalf("not logged: %s", step.want)
				}
			}
			if away := f.Held("") != nil; away != step.away {
				t.Errorf("%s: away is %t", step.sql, away)
			}
		}
		f.Stop()
	}
}

// While the database is there, an error of a connection is logged with its text, and one in a minute is enough. What is left of an
// outage that has just ended is not logged.
func TestErrorsOfConnectionsAreLogged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &Fleet{db: migrated(t), outage: outage{log: slog.New(slog.DiscardHandler)}}
	log := slog.New(f.quiet(slog.NewTextHandler(&out, nil)))
	log.Error("Producer: fetch error", "err", "unexpected EOF")
	log.Error("Notifier: run error", "err", "conn closed")
	log.Error("Producer: other error", "err", "no such column")
	log.Error("Completer: too many errors") // without the error
	log.Info("Client started")
	text := out.String()
	if strings.Count(text, "\n") != 3 || !strings.Contains(text, "too many errors") || !strings.Contains(text, "unexpected EOF") || !strings.Contains(text, "no such column") {
		t.Errorf("logged\n%s", text)
	}
	again := slog.New(f.quiet(slog.NewTextHandler(&out, nil)))
	f.outage.note(errors.New("away"))
	again.Error("Completer: too many errors")
	f.outage.note(nil)
	again.Error("Producer: fetch error", "err", "unexpected EOF")
	if out.String() != text {
		t.Errorf("after an outage:\n%s", out.String()[len(text):])
	}
}

// Who asks whether the database is away does not wait for it, even while a ping waits.
func TestAwayWaitsForNothing(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), "postgres://ralph@"+silent.Addr().String()+"/ralph?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f := &Fleet{db: &Database{pool: pool}, outage: outage{log: slog.New(slog.DiscardHandler)}}
	pinged := make(chan bool)
	go func() { pinged <- f.away(t.Context()) }()
	conn, err := silent.Accept() // it is at it
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Held(""); err != nil { // as after a wait for the ping
		t.Errorf("before it is known: %v", err)
	}
	if err := errors.Join(conn.Close(), silent.Close()); err != nil {
		t.Error(err)
	}
	if !<-pinged || !errors.Is(f.Held(""), ErrAway) {
		t.Errorf("after the ping: %v", f.Held(""))
	}
}
