package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/worktree"
)

// A row is replaced if nobody works it and nobody holds the claim of its issue.
func TestReap(t *testing.T) {
	t.Parallel()
	claims := held{
		"claimed":  {Holder: worktree.Holder{Run: "r"}},
		"expired":  {Holder: worktree.Holder{Run: "r"}, Gone: true},
		"finished": {},
		"broken":   {Err: errors.New("cannot be read")},
	}
	p := planner(t, time.Hour, claims, 20)
	p.s.Limit = 0
	d := p.f.db
	machine := func(id string, rows []int64) {
		if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine (id, name, projects, rows, expires_at) VALUES ($1, $1, '{"p": 20}', $2, now() + interval '1 hour')
			ON CONFLICT (id) DO UPDATE SET rows = excluded.rows`, id, rows); err != nil {
			t.Fatal(err)
		}
	}
	machine("lives", []int64{})
	p.mustInsert(t, "claimed", "expired", "finished", "broken", "none", "worked", "just-taken", "never-heard", "waits")
	set := func(key, by, at string) int64 {
		var id int64
		if err := d.pool.QueryRow(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1, attempted_by = ARRAY['earlier', $2], attempted_at = now() - $3::interval
			WHERE args ->> 'key' = $1 RETURNING id`, key, by, at).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, key := range []string{"claimed", "expired", "finished", "broken", "none"} {
		set(key, "dead", "1 second")
	}
	id := set("worked", "lives", "5 hours")
	set("just-taken", "lives", "1 second")
	set("never-heard", "lives", "5 hours")
	machine("lives", []int64{id})
	for range 2 { // the second time there is nothing to do
		if err := p.replaceDead(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"claimed running 1", "expired discarded 1", "finished discarded 1", "broken running 1", "none discarded 1", "worked running 1", "just-taken running 1",
		"never-heard discarded 1", "waits available 1", "expired available 2", "finished available 2", "none available 2", "never-heard available 2",
	}
	got := rows(t, d)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("rows\n%q, want\n%q", got, want)
	}
}

// A row ends together with its run, and its slot is free. The row that has replaced it does not end.
func TestFinish(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, held{}, 0)
	d := p.f.db
	p.mustInsert(t, "k")
	lease, ok, err := d.takeLeases(t.Context(), "p", "k", p.f.id, time.Hour, scope{name: "s", limit: 1})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	for attempt, want := range map[int]string{1: "k running 1", 2: "k completed 1"} {
		var job rivertype.JobRow
		if err := d.pool.QueryRow(t.Context(), "UPDATE river_job SET state = 'running', finalized_at = NULL, attempt = 2 RETURNING id").Scan(&job.ID); err != nil {
			t.Fatal(err)
		}
		job.Attempt = attempt
		p.f.finish(t.Context(), lease, &job, true)
		if got := rows(t, d); !slices.Equal(got, []string{want}) {
			t.Errorf("rows %q, want %q", got, want)
		}
	}
	if n := number(t, d, "SELECT count(*) FROM ralph_lease"); n != 0 {
		t.Errorf("%d slots are held", n)
	}
}

// The slot of a dead machine, for a project that nobody serves any more, is freed after a while and not before.
func TestSlotOfAProjectThatNobodyServes(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Microsecond, held{}, 0)
	d, s := p.f.db, scope{name: "account", limit: 1}
	if _, ok, err := d.takeLeases(t.Context(), "gone", "k", "dead", time.Microsecond, s); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for _, c := range []struct {
		age  string
		free bool
	}{{"1 minute", false}, {"20 minutes", true}} {
		if _, err := d.exec(t.Context(), "UPDATE ralph_lease SET expires_at = now() - interval '"+c.age+"'"); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := d.takeLeases(t.Context(), "p", "x", "h", time.Microsecond, s); err != nil || ok != c.free {
			t.Errorf("after %s: %t, %v", c.age, ok, err)
		}
	}
}

// The slot of a machine that is cut off counts while it holds the claim of its issue, because it continues to work.
func TestReapSlots(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Microsecond, held{
		"claimed": {Holder: worktree.Holder{Run: "r"}}, "expired": {Holder: worktree.Holder{Run: "r"}, Gone: true}, "broken": {Err: errors.New("cannot be read")},
	}, 0)
	d, s := p.f.db, scope{name: "s", limit: 4}
	for _, key := range []string{"claimed", "expired", "broken", "none"} {
		if _, ok, err := d.takeLeases(t.Context(), "p", key, "cut off", time.Microsecond, s); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	full := func() bool {
		_, ok, err := d.takeLeases(t.Context(), "p", "", "h", time.Microsecond, s)
		if err != nil {
			t.Fatal(err)
		}
		return !ok
	}
	if !full() {
		t.Error("a slot is given away while its holder may work on")
	}
	if err := p.replaceDead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, d, "SELECT count(*) FROM ralph_lease WHERE key IN ('claimed', 'broken')"); n != 2 || full() {
		t.Errorf("%d slots of issues that are claimed, want 2; the others are taken: %t", n, full())
	}
	if _, err := d.exec(t.Context(), "UPDATE ralph_lease SET expires_at = now() - interval '25 hours'"); err != nil {
		t.Fatal(err)
	}
	if full() || number(t, d, "SELECT count(*) FROM ralph_lease") != 1 {
		t.Error("slots that nobody gives back are held for ever")
	}
}

// withClock makes now() in the database use an offset, which set changes. It also makes the server look as if it had been
// up for long.
func withClock(t *testing.T, where string) (set func(time.Duration)) {
	t.Helper()
	d, err := OpenFrom(t.Context(), fixed(where))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := d.pool.Config().ConnConfig.Database
	for _, sql := range []string{
		"CREATE TABLE fake_clock (ahead interval NOT NULL)", "INSERT INTO fake_clock VALUES ('0')",
		"CREATE FUNCTION public.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT pg_catalog.now() + ahead FROM public.fake_clock'",
		"CREATE FUNCTION public.pg_postmaster_start_time() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT pg_catalog.now() - make_interval(days => 1)'",
		"ALTER DATABASE " + name + " SET search_path = public, pg_catalog",
	} {
		if _, err := d.exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return func(ahead time.Duration) {
		if _, err := d.exec(t.Context(), "UPDATE fake_clock SET ahead = make_interval(secs => $1)", ahead.Seconds()); err != nil {
			t.Fatal(err)
		}
	}
}

// expiring are claims that all expire at the same moment.
type expiring struct {
	held
	gone func() bool
}

func (e expiring) Claims(context.Context) (map[string]worktree.ClaimState, error) {
	return map[string]worktree.ClaimState{"k": {Holder: worktree.Holder{Run: "r"}, Gone: e.gone()}}, nil
}

// A machine dies just after it has renewed the claim of its issue, with or without its planner. The issue has a row for
// other machines within the claim's TTL plus a third, but not before the claim has expired. The test controls both clocks,
// the planner's and the database's.
func TestRestartOfADeadWorkersIssue(t *testing.T) {
	t.Parallel()
	const (
		ttl    = 10 * time.Minute // of a claim
		margin = time.Minute      // for which claims of other hosts still count
		step   = 2500 * time.Millisecond
	)
	for _, planned := range []bool{false, true} {
		where := server.Database(t)
		set := withClock(t, where)
		d, err := OpenFrom(t.Context(), fixed(where))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		f, err := Start(t.Context(), Config{Database: d, Plan: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Stop)
		began := time.Now()
		var age time.Duration
		s := &served{Project: Project{Name: "p", Poll: time.Hour, Claims: expiring{gone: func() bool { return age > ttl+margin }}}}
		p := planningOf(f, s)
		p.now = func() time.Time { return began.Add(age) }
		p.mustInsert(t, "k")
		if _, err := d.exec(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1, attempted_by = ARRAY['dead'], attempted_at = now()`); err != nil {
			t.Fatal(err)
		}
		if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine SELECT 'dead', 'dead', '{"p": 1}', array_agg(id), now() + make_interval(secs => $1) FROM river_job`, f.c.TTL.Seconds()); err != nil {
			t.Fatal(err)
		}
		if planned {
			if _, ok, err := d.takeLeases(t.Context(), "p", "", "dead", f.c.TTL, scope{name: "planner of p", limit: 1}); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		replaced := []string{"k discarded 1", "k available 2"}
		for ; age <= ttl+ttl/3 && !slices.Equal(rows(t, d), replaced); age += step {
			set(age)
			if err := p.runOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := rows(t, d); !slices.Equal(got, replaced) || age <= ttl {
			t.Errorf("its planner died too: %t: after %s: %q", planned, age, got)
		}
		t.Logf("its planner died too: %t: the issue has a row after %s", planned, age)
	}
}
