package fleet

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// A database that replaced another one, or is an older copy, lacks leases and assigns their IDs to others. A holder takes
// its lease again if there is room, and never changes those of others.
func TestLostLeases(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	mustTake := func(key, holder string, limit int) *leases {
		t.Helper()
		l, ok, err := d.takeLeases(t.Context(), "p", key, holder, time.Hour, scope{name: "s", limit: limit})
		if err != nil || !ok {
			t.Fatalf("%s: %t, %v", key, ok, err)
		}
		return l
	}
	keys := func(want string) {
		t.Helper()
		var got string
		if err := d.pool.QueryRow(t.Context(), "SELECT coalesce(string_agg(key, ' ' ORDER BY key), '') FROM ralph_lease").Scan(&got); err != nil || got != want {
			t.Errorf("the leases are of %q, %v; want %q", got, err, want)
		}
	}
	lose := func() {
		if _, err := d.exec(t.Context(), "TRUNCATE ralph_lease RESTART IDENTITY"); err != nil {
			t.Fatal(err)
		}
	}
	for name, holder := range map[string]string{"another machine": "h2", "the same machine": "h1"} {
		lose()
		old := mustTake("old", "h1", 2)
		lose()
		other := mustTake("new", holder, 2)
		if other.ids[0] != old.ids[0] {
			t.Fatalf("ids %v and %v", old.ids, other.ids)
		}
		if held, err := old.renew(t.Context()); err != nil || !held {
			t.Errorf("%s: not taken again: %t, %v", name, held, err)
		}
		keys("new old")
		if held, err := old.renew(t.Context()); err != nil || !held {
			t.Errorf("%s: not renewed: %t, %v", name, held, err)
		}
		if err := old.free(t.Context()); err != nil {
			t.Error(err)
		}
		keys("new")
	}
	lose()
	old := mustTake("old", "h1", 1)
	lose()
	mustTake("new", "h2", 1)
	if held, err := old.renew(t.Context()); err != nil || held {
		t.Errorf("more than the limit: %t, %v", held, err)
	}
	if err := old.free(t.Context()); err != nil {
		t.Error(err)
	}
	keys("new")
}

// After a change of the server, nobody takes the lease of an issue until the others have had time to take theirs again.
func TestLeasesOfAnotherServer(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	s := scope{name: "s", limit: 2}
	old, ok, err := d.takeLeases(t.Context(), "p", "old", "h1", time.Hour, s)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := d.exec(t.Context(), "TRUNCATE ralph_lease"); err != nil {
		t.Fatal(err)
	}
	d.server.name = "the one before"
	for _, c := range []struct {
		when, key string
		ago       time.Duration
		want      bool
	}{{"at once", "new", 0, false}, {"at once, to plan", "", 0, true}, {"later", "new", time.Hour, true}} {
		d.server.since = d.server.since.Add(-c.ago)
		scopes := map[bool]scope{true: {name: "planner", limit: 1}, false: s}
		if _, ok, err := d.takeLeases(t.Context(), "p", c.key, "h2", time.Hour, scopes[c.key == ""]); err != nil || ok != c.want {
			t.Errorf("%s: %t, %v", c.when, ok, err)
		}
		if held, err := old.renew(t.Context()); err != nil || !held {
			t.Errorf("%s the lease is not taken again: %t, %v", c.when, held, err)
		}
	}
}

// The limits hold also if the server's default isolation level would show the state before another transaction's end.
func TestLeasesInAnyIsolation(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	sep := map[bool]string{true: "&", false: "?"}[strings.Contains(where, "?")]
	d, err := OpenFrom(t.Context(), fixed(where+sep+"default_transaction_isolation=repeatable%20read"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	for range 20 {
		all.Go(func() error {
			_, _, err := d.takeLeases(t.Context(), "p", "k", "h", time.Minute, scope{name: "s", limit: 3})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	if n := number(t, d, "SELECT count(*) FROM ralph_lease"); n != 3 {
		t.Errorf("%d leases, want 3", n)
	}
}
