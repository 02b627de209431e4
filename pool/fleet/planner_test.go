package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// held are claims of issues.
type held map[string]worktree.ClaimState

func (h held) Claim(context.Context, string, worktree.Holder, time.Duration) (*worktree.Claim, error) {
	return nil, worktree.ErrTaken
}

func (h held) Claims(context.Context) (map[string]worktree.ClaimState, error) { return h, nil }

// planner plans project p, without a pool.
func planner(t *testing.T, ttl time.Duration, claims held, limit int) *planning {
	t.Helper()
	f, err := Start(t.Context(), Config{Database: migrated(t), Plan: true, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	s := &served{Project: Project{Name: "p", Claims: claims, Limit: limit, Account: "account a"}}
	return planningOf(f, s)
}

// planningOf plans a project whose backlog is empty.
func planningOf(f *Fleet, s *served) *planning {
	empty := func(context.Context) (pool.Plan, error) { return pool.Plan{}, nil }
	return &planning{f: f, s: s, maintain: empty, now: time.Now, wait: f.c.Tick, open: map[string]bool{}}
}

// rows lists the rows, as "key state generation".
func rows(t *testing.T, d *Database) []string {
	t.Helper()
	r, err := d.pool.Query(t.Context(), "SELECT concat_ws(' ', args ->> 'key', state, args ->> 'generation') FROM river_job ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(r, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (p *planning) mustFeed(t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		p.queue = append(p.queue, task{key: k})
	}
	if err := errors.Join(p.count(t.Context()), p.feed(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// A row is replaced when nobody works it and nobody holds its issue's claim.
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
	p.mustFeed(t, "claimed", "expired", "finished", "broken", "none", "worked", "just-taken", "never-heard", "waits")
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
		if err := p.reap(t.Context()); err != nil {
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

// With its run a row ends at once, and its slot is free; but not the row that has replaced it.
func TestFinish(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, held{}, 0)
	d := p.f.db
	p.mustFeed(t, "k")
	lease, ok, err := d.take(t.Context(), "p", "k", p.f.id, time.Hour, scope{name: "s", limit: 1})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	for attempt, want := range map[int]string{1: "k running 1", 2: "k completed 1"} {
		var job rivertype.JobRow
		if err := d.pool.QueryRow(t.Context(), "UPDATE river_job SET state = 'running', finalized_at = NULL, attempt = 2 RETURNING id").Scan(&job.ID); err != nil {
			t.Fatal(err)
		}
		job.Attempt = attempt
		if err := p.f.finish(t.Context(), lease, &job, true); err != nil {
			t.Fatal(err)
		}
		if got := rows(t, d); !slices.Equal(got, []string{want}) {
			t.Errorf("rows %q, want %q", got, want)
		}
	}
	if n := number(t, d, "SELECT count(*) FROM ralph_lease"); n != 0 {
		t.Errorf("%d slots are held", n)
	}
}

// A machine dies with a run of a project that nobody serves any more: its slot is free after a while, and not before.
func TestSlotOfAProjectThatNobodyServes(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Microsecond, held{}, 0)
	d, s := p.f.db, scope{name: "account", limit: 1}
	if _, ok, err := d.take(t.Context(), "gone", "k", "dead", time.Microsecond, s); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for _, c := range []struct {
		age  string
		free bool
	}{{"1 minute", false}, {"20 minutes", true}} {
		if _, err := d.exec(t.Context(), "UPDATE ralph_lease SET expires_at = now() - interval '"+c.age+"'"); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := d.take(t.Context(), "p", "x", "h", time.Microsecond, s); err != nil || ok != c.free {
			t.Errorf("after %s: %t, %v", c.age, ok, err)
		}
	}
}

// The slot of a machine that is cut off counts for as long as it has the claim of its issue: it works on.
func TestReapSlots(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Microsecond, held{
		"claimed": {Holder: worktree.Holder{Run: "r"}}, "expired": {Holder: worktree.Holder{Run: "r"}, Gone: true}, "broken": {Err: errors.New("cannot be read")},
	}, 0)
	d, s := p.f.db, scope{name: "s", limit: 4}
	for _, key := range []string{"claimed", "expired", "broken", "none"} {
		if _, ok, err := d.take(t.Context(), "p", key, "cut off", time.Microsecond, s); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	full := func() bool {
		_, ok, err := d.take(t.Context(), "p", "", "h", time.Microsecond, s)
		if err != nil {
			t.Fatal(err)
		}
		return !ok
	}
	if !full() {
		t.Error("a slot is given away while its holder may work on")
	}
	if err := p.reap(t.Context()); err != nil {
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

// A row is due at once, by the database's time, whatever the machine that inserts it takes for that.
func TestRowIsDue(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	p.f.clock.ahead.Store(int64(time.Hour)) // rows are an hour early by this
	p.mustFeed(t, "a", "b")
	if n := number(t, p.f.db, "SELECT count(*) FROM river_job WHERE state = 'available' AND scheduled_at BETWEEN now() - interval '62 minutes' AND now() - interval '58 minutes'"); n != 2 {
		t.Errorf("%d rows are due, want 2", n)
	}
}

// withClock makes now() in the database go by an offset, which set sets; and the server look as if it had been up for long.
func withClock(t *testing.T, where string) (set func(time.Duration)) {
	t.Helper()
	d, err := Open(t.Context(), where)
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

// expiring are claims of issues that expire at the same moment.
type expiring struct {
	held
	gone func() bool
}

func (e expiring) Claims(context.Context) (map[string]worktree.ClaimState, error) {
	return map[string]worktree.ClaimState{"k": {Holder: worktree.Holder{Run: "r"}, Gone: e.gone()}}, nil
}

// A machine dies just after it has renewed the claim of its issue, with its planner or without: the issue has a row for the others
// within the claim's life plus a third, and not before the claim has expired. Both clocks, the planner's and the database's, are
// the test's.
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
		d, err := Open(t.Context(), where)
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
		p.mustFeed(t, "k")
		if _, err := d.exec(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1, attempted_by = ARRAY['dead'], attempted_at = now()`); err != nil {
			t.Fatal(err)
		}
		if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine SELECT 'dead', 'dead', '{"p": 1}', array_agg(id), now() + make_interval(secs => $1) FROM river_job`, f.c.TTL.Seconds()); err != nil {
			t.Fatal(err)
		}
		if planned {
			if _, ok, err := d.take(t.Context(), "p", "", "dead", f.c.TTL, scope{name: "planner of p", limit: 1}); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		replaced := []string{"k discarded 1", "k available 2"}
		for ; age <= ttl+ttl/3 && !slices.Equal(rows(t, d), replaced); age += step {
			set(age)
			if err := p.turn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := rows(t, d); !slices.Equal(got, replaced) || age <= ttl {
			t.Errorf("its planner died too: %t: after %s: %q", planned, age, got)
		}
		t.Logf("its planner died too: %t: the issue has a row after %s", planned, age)
	}
}

// While machines take all rows before the planner looks again it looks more often, and less often afterwards.
func TestTurns(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	tick := p.f.c.Tick
	turn := func(want time.Duration) {
		t.Helper()
		if err := p.turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.wait != want {
			t.Errorf("the next turn is in %s, want %s", p.wait, want)
		}
	}
	p.looked, p.s.Poll = time.Now(), time.Hour
	turn(tick)
	for n, want := range []time.Duration{tick / 2, tick / 4, tick / 8, tick / 16, tick / busy, tick / busy} {
		p.queue = append(p.queue, task{key: fmt.Sprint(n)}, task{key: fmt.Sprint(n, "b")})
		turn(want)
		if _, err := p.f.db.exec(t.Context(), "UPDATE river_job SET state = 'completed', finalized_at = now()"); err != nil {
			t.Fatal(err)
		}
		p.looked = time.Now()
	}
	turn(tick / busy * 2)
	if _, err := p.f.db.exec(t.Context(), "UPDATE ralph_lease SET holder = 'another'"); err != nil {
		t.Fatal(err)
	}
	other := planningOf(p.f, p.s)
	for range 3 { // another plans: it is asked once in a while
		if lead, err := other.leads(t.Context()); err != nil || lead {
			t.Errorf("two plan: %t, %v", lead, err)
		}
	}
}

// The time that machines share is the database's, whatever a machine's own clock says.
func TestClock(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	var c clock
	c.ahead.Store(int64(time.Hour)) // as if the machine's clock had just been set
	ahead, err := c.set(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	var there time.Time
	if err := d.pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&there); err != nil {
		t.Fatal(err)
	}
	if off := c.Now().Sub(there).Abs(); off > time.Minute || ahead.Abs() > time.Minute || c.NowOrNil() != nil {
		t.Errorf("the shared time is %s off, the machine's clock %s", off, ahead)
	}
}

// As many rows are open as machines can work, one for an issue, and what is over may come again.
func TestFeed(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	d := p.f.db
	p.mustFeed(t, "a", "b", "c", "d", "e")
	if got := rows(t, d); len(got) != ahead {
		t.Errorf("without a machine: %q", got)
	}
	for n := range 2 {
		if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine VALUES ($1, $1, '{"p": 1, "q": 9}', '{}', now() + interval '1 hour')`, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	p.mustFeed(t)
	if got := rows(t, d); !slices.Equal(got, []string{"a available 1", "b available 1", "c available 1", "d available 1"}) {
		t.Errorf("with two machines: %q", got)
	}
	other := planningOf(p.f, p.s)
	other.mustFeed(t, "a", "b", "c", "d")
	if got := rows(t, d); len(got) != 4 {
		t.Errorf("another planner has doubled some: %q", got)
	}
	if _, err := d.exec(t.Context(), "UPDATE river_job SET state = 'completed', finalized_at = now() WHERE args ->> 'key' IN ('a', 'b')"); err != nil {
		t.Fatal(err)
	}
	p.mustFeed(t, "a")
	if got := rows(t, d); len(got) != 6 || got[4] != "e available 1" || got[5] != "a available 1" || !p.ended {
		t.Errorf("after two have ended: %q, %t", got, p.ended)
	}
	p.s.Limit = 1
	p.mustFeed(t, "f")
	if got := rows(t, d); len(got) != 6 {
		t.Errorf("beyond the limit: %q", got)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	now := time.Now()
	skipped := func(code journal.SkipCode, in time.Duration) pool.Skipped {
		return pool.Skipped{Skip: journal.Skip{Code: code, Until: now.Add(in)}}
	}
	plan := pool.Plan{
		Work:     []tracker.Issue{{Key: "b"}, {Key: "a"}},
		FollowUp: []pool.FollowUp{{FollowUp: tracker.FollowUp{Key: "a"}}},
		Skipped:  []pool.Skipped{skipped(journal.SkipRetry, time.Hour), skipped(journal.SkipRetry, time.Minute), skipped(journal.SkipRetry, -time.Minute), skipped(journal.SkipHuman, time.Second)},
	}
	if got := tasks(plan); !slices.Equal(got, []task{{"a", true}, {"b", false}}) {
		t.Errorf("tasks %+v", got)
	}
	if got := due(plan, now); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("due %s", got)
	}
	p := &planning{s: &served{Project: Project{Poll: time.Minute}}, looked: now}
	for _, c := range []struct {
		name string
		set  func()
		in   time.Duration
		want bool
	}{
		{"just looked", func() { p.ended = true }, time.Second, false},
		{"some row has ended, and nothing waits", func() {}, 3 * time.Second, true},
		{"something waits", func() { p.queue = []task{{key: "x"}} }, 3 * time.Second, false},
		{"a retry is due", func() { p.due = now.Add(4 * time.Second) }, 4 * time.Second, true},
		{"not yet", func() {}, 3 * time.Second, false},
		{"the poll", func() { p.due = time.Time{} }, time.Minute, true},
	} {
		c.set()
		if got := p.isDue(now.Add(c.in)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// An issue whose provider refuses waits as long as that says, and the longest word counts.
func TestBlocked(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	for _, wait := range []time.Duration{time.Hour, time.Minute} {
		if err := d.block(t.Context(), "a", wait); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := d.blocked(t.Context(), "p", "a"); err != nil || got < 59*time.Minute || got > time.Hour {
		t.Errorf("%s, %v", got, err)
	}
	if got, _, err := d.blocked(t.Context(), "p", "b"); err != nil || got != 0 {
		t.Errorf("another account: %s, %v", got, err)
	}
	s, now := &served{}, time.Now()
	s.fails(now)
	if got := s.resting(now); got != restMin {
		t.Errorf("rests %s", got)
	}
	for range 20 {
		s.fails(now)
	}
	if got := s.resting(now); got != restMax {
		t.Errorf("rests %s", got)
	}
}

// An agent that a run on one machine found unavailable is not tried with the same account on another, until it is back.
func TestParked(t *testing.T) {
	t.Parallel()
	d, now := migrated(t), time.Now()
	until := now.Add(time.Hour).UTC().Truncate(time.Microsecond)
	list := []journal.Parked{
		{Agent: "one", Model: "m", Class: agents.RateLimit, Until: until}, {Agent: "back", Class: agents.RateLimit, Until: now.Add(-time.Minute)},
		{Agent: "far", Class: agents.Overload, Until: until},
	}
	for range 2 {
		if err := d.park(t.Context(), "a", now, list); err != nil {
			t.Fatal(err)
		}
		list[0].Until = until.Add(-time.Minute) // less than is known
	}
	wait, parked, err := d.blocked(t.Context(), "p", "a")
	if err != nil || wait != 0 || len(parked) != 1 || parked[0].Choice() != (agents.Choice{Agent: "one", Model: "m"}) || !parked[0].Until.Equal(until) || parked[0].Class != agents.RateLimit {
		t.Fatalf("waits %s, parked %+v, %v", wait, parked, err)
	}
	if _, parked, err := d.blocked(t.Context(), "p", "b"); err != nil || len(parked) != 0 {
		t.Errorf("another account: %+v, %v", parked, err)
	}
	chain := []agents.Choice{{Agent: "one", Model: "m"}, {Agent: "two"}}
	var lot parking.Lot
	lot.Park(parked)
	if got := lot.Waiting(chain, now); len(got) != 1 || got[0].Choice() != chain[0] {
		t.Errorf("waiting %+v", got)
	}
	lot.Park([]journal.Parked{{Agent: "one", Model: "m", Until: now.Add(time.Minute)}})
	if got := lot.Back(chain, now); !got.Equal(until) {
		t.Errorf("back at %s, want %s", got, until)
	}
}

// Two repositories of the same project name are not worked together.
func TestOtherRepository(t *testing.T) {
	t.Parallel()
	f := planner(t, time.Hour, nil, 0).f
	other, err := Start(t.Context(), Config{Database: f.db, Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	for project, repository := range map[string]string{"p": "example.com/shop", "q": "example.com/site", "local": ""} {
		if err := other.add(&served{Project: Project{Name: project, Repository: repository}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		project, repository string
		wrong               bool
	}{{"p", "example.com/shop", false}, {"p", "example.com/site", true}, {"p", "", false}, {"r", "example.com/shop", false}, {"local", "example.com/shop", false}} {
		if err := f.sameRepository(t.Context(), Project{Name: c.project, Repository: c.repository}); errors.Is(err, ErrOtherRepository) != c.wrong {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A machine that does not plan wakes the one that does, once.
func TestWake(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	looks := 0
	p.maintain = func(context.Context) (pool.Plan, error) { looks++; return pool.Plan{}, nil }
	p.s.Poll = time.Hour
	turn := func(want int) {
		t.Helper()
		if err := p.turn(t.Context()); err != nil || looks != want {
			t.Errorf("%d looks at the backlog, want %d, %v", looks, want, err)
		}
	}
	turn(1)
	turn(1)
	other, err := Start(t.Context(), Config{Database: p.f.db})
	if err != nil {
		t.Fatal(err)
	}
	other.Wake("p")
	other.Wake("q")
	other.Stop() // once it has written that
	turn(2)
	turn(2)
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	p.mustFeed(t, "a")
	for _, want := range []bool{true, false} {
		if got, err := p.f.db.Stop(t.Context(), "p", "a"); err != nil || got != want {
			t.Errorf("stopped: %t, %v", got, err)
		}
	}
	if got := rows(t, p.f.db); !slices.Equal(got, []string{"a cancelled 1"}) {
		t.Errorf("rows %q", got)
	}
}

// A pause holds on all machines: no row is inserted, none is begun, and each process learns of it.
func TestPause(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	d := p.f.db
	other, err := Start(t.Context(), Config{Database: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine (id, name, projects, rows, expires_at) VALUES ('m', 'm', '{"p": 2}', '{}', now() + interval '1 hour')`); err != nil {
		t.Fatal(err)
	}
	look := func() bool {
		if err := p.f.readPauses(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p.f.Pause("p").On()
	}
	wait := func() time.Duration {
		wait, _, err := d.blocked(t.Context(), "p", "account a")
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	if err := errors.Join(other.Pause("p").Set(true), other.Pause("p").Set(true)); err != nil {
		t.Fatal(err)
	}
	p.mustFeed(t, "a")
	if n := len(rows(t, d)); n != 0 || wait() == 0 || !look() || !other.Pause("p").On() || other.Pause("q").On() {
		t.Errorf("while it is paused: %d rows, a wait of %s, paused %t", n, wait(), look())
	}
	if l, err := d.Look(t.Context()); err != nil || !slices.Equal(l.Paused, []string{"p"}) {
		t.Errorf("look: %v, %v", l.Paused, err)
	}
	if err := other.Pause("p").Set(false); err != nil {
		t.Fatal(err)
	}
	p.mustFeed(t)
	if n := len(rows(t, d)); n != 1 || wait() != 0 || look() {
		t.Errorf("afterwards: %d rows, a wait of %s, paused %t", n, wait(), look())
	}
}
