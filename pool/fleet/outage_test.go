package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
	"github.com/ralph-pool/ralph/pool/journal"
)

// lines is a log handler that sends each text.
type lines struct {
	slog.Handler
	got chan string
}

func (l lines) Handle(_ context.Context, r slog.Record) error {
	l.got <- r.Message
	return nil
}

// An outage of the database causes one line at its beginning and one at its end.
func TestOutageIsTwoLines(t *testing.T) {
	t.Parallel()
	own, end, err := fleettest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	d, err := OpenFrom(t.Context(), fixed(own.Database(t)))
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
	if _, err := d.exec(t.Context(), "CHECKPOINT"); err != nil { // in a crash, a test server forgets changes since the last checkpoint
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		select {
		case got := <-log.got:
			if got != want {
				t.Errorf("logged %q, want %q", got, want)
			}
		case <-time.After(time.Minute): // reached only by a failing test
			t.Fatalf("not logged: %s", want)
		}
	}
	for range 2 {
		if err := own.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		next("the database is unavailable; active runs continue")
		if err := f.PauseReason(""); !errors.Is(err, ErrUnavailable) {
			t.Errorf("away: %v", err)
		}
		if err := own.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		next("the database is available again")
		if err := f.PauseReason(""); err != nil {
			t.Errorf("back: %v", err)
		}
	}
	f.Stop()
	if len(log.got) > 0 {
		t.Errorf("one more line: %s", <-log.got)
	}
}

// If the server is back and refuses this machine, the log says that, too: it does not end by itself.
func TestOutageThatIsRefused(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	o := outage{log: slog.New(slog.NewTextHandler(&out, nil))}
	starting := fmt.Errorf("connect: %w", &pgconn.PgError{Code: "57P03", Message: "the database system is starting up"}) // as after a restart
	refused := fmt.Errorf("connect: %w", &pgconn.PgError{Code: "28P01", Message: "wrong password"})
	for _, c := range []struct {
		err   error
		lines int
	}{{errors.New("gone"), 1}, {errors.New("still gone"), 1}, {starting, 1}, {refused, 2}, {refused, 2}, {errors.New("gone"), 2}, {nil, 3}, {refused, 4}, {refused, 4}} {
		if o.note(c.err); strings.Count(out.String(), "\n") != c.lines {
			t.Errorf("%v: want %d lines:\n%s", c.err, c.lines, out.String())
		}
	}
	if n := strings.Count(out.String(), "wrong password"); n != 2 {
		t.Errorf("%d lines name the refusal:\n%s", n, out.String())
	}
}

// A database that answers but accepts no writes is away, too: a standby, or one that was emptied.
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
		}{{c.breaks, "the database is unavailable; active runs continue", true}, {c.repairs, "the database is available again", false}} {
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
				case <-time.After(time.Minute): // reached only by a failing test
					t.Fatalf("not logged: %s", step.want)
				}
			}
			if away := f.PauseReason("") != nil; away != step.away {
				t.Errorf("%s: away is %t", step.sql, away)
			}
		}
		f.Stop()
	}
}

// While the database is there, an error of a connection is logged with its text, once a minute. Late errors of an outage
// that has just ended are not logged.
func TestErrorsOfConnectionsAreLogged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &Fleet{db: migrated(t), outage: outage{log: slog.New(slog.DiscardHandler)}}
	log := slog.New(f.Quiet(slog.NewTextHandler(&out, nil)))
	log.Error("Producer: fetch error", "err", "unexpected EOF")
	log.Error("Notifier: run error", "err", "conn closed")
	log.Error("Producer: other error", "err", "no such column")
	log.Error("Completer: too many errors") // without an error attribute
	log.Info("Client started")
	text := out.String()
	if strings.Count(text, "\n") != 3 || !strings.Contains(text, "too many errors") || !strings.Contains(text, "unexpected EOF") || !strings.Contains(text, "no such column") {
		t.Errorf("logged\n%s", text)
	}
	again := slog.New(f.Quiet(slog.NewTextHandler(&out, nil)))
	f.outage.note(errors.New("away"))
	again.Error("Completer: too many errors")
	f.outage.note(nil)
	again.Error("Producer: fetch error", "err", "unexpected EOF")
	if out.String() != text {
		t.Errorf("after an outage:\n%s", out.String()[len(text):])
	}
}

// Asking whether the database is away does not wait for it, even while a ping waits.
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
	conn, err := silent.Accept() // the ping has begun
	if err != nil {
		t.Fatal(err)
	}
	if err := f.PauseReason(""); err != nil { // must not wait for the ping
		t.Errorf("before it is known: %v", err)
	}
	if err := errors.Join(conn.Close(), silent.Close()); err != nil {
		t.Error(err)
	}
	if !<-pinged || !errors.Is(f.PauseReason(""), ErrUnavailable) {
		t.Errorf("after the ping: %v", f.PauseReason(""))
	}
}

// A reader during an outage waits only briefly, sees this machine's runs, and is not told that there are no others.
func TestHistoryWithoutDatabase(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, j := join(t, d)
	defer f.Stop()
	if err := j.Save(t.Context(), journal.Record{Run: journal.Run{ID: "here", Started: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	f.outage.note(errors.New("gone"))
	hung, err := d.pool.Begin(t.Context())
	if err == nil {
		_, err = hung.Exec(t.Context(), "LOCK TABLE ralph_run IN ACCESS EXCLUSIVE MODE")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hung.Rollback(context.Background()) }()
	ctx, cancel := context.WithTimeout(t.Context(), callTime/2)
	defer cancel()
	if list, err := j.History().Find(ctx, journal.Query{}); err != nil || len(list) != 1 || list[0].ID != "here" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := j.History().(journal.Totals).Totals(ctx, "", time.Time{}); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := j.History().Find(ctx, journal.Query{Run: "elsewhere"}); !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("%v, %v", list, err)
	}
}

// A run that ends while the database is away frees its slot as soon as the database is back.
func TestSlotOfRunThatEndedInOutage(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	f, _ := join(t, d)
	defer f.Stop()
	take := func(key string) (*leases, bool) {
		t.Helper()
		l, ok, err := d.takeLeases(t.Context(), "p", key, f.id, time.Hour, scope{name: "s", limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		return l, ok
	}
	held, ok := take("ended")
	if !ok {
		t.Fatal("no slot")
	}
	for _, sql := range []string{"ALTER TABLE ralph_lease RENAME TO away", "ALTER TABLE away RENAME TO ralph_lease"} {
		if _, err := d.exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if sql == "ALTER TABLE ralph_lease RENAME TO away" {
			f.finish(t.Context(), held, &rivertype.JobRow{ID: 1, Attempt: 1}, true)
		}
	}
	over := time.After(time.Minute) // reached only by a failing test
	for ok = false; !ok; _, ok = take("next") {
		select {
		case <-over:
			t.Fatal("the slot is not free")
		case <-time.After(10 * time.Millisecond): // no event tells
		}
	}
}

// Ralph limits waits for locks itself. Limits of the role or of the database do not apply.
func TestLimitsOfTheRole(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	where := d.pool.Config().ConnConfig
	for _, key := range []string{"lock_timeout", "statement_timeout"} {
		if _, err := d.exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s SET %s = '30s'", where.Database, key)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenFrom(t.Context(), fixed(where.ConnString()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, key := range []string{"lock_timeout", "statement_timeout"} {
		if got, err := query(t.Context(), again, pgx.RowTo[string], "SELECT current_setting($1)", key); err != nil || got[0] != "0" {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
}
