package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/postgres"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// held is a set of held claims.
type held map[string]worktree.ClaimState

func (h held) Claim(context.Context, string, worktree.Holder, time.Duration) (*worktree.Claim, error) {
	return nil, worktree.ErrTaken
}

func (h held) Claims(context.Context) (map[string]worktree.ClaimState, error) { return h, nil }

// planner plans project p without a pool.
func planner(t *testing.T, ttl time.Duration, claims held, limit int) *planning {
	t.Helper()
	f, err := Start(t.Context(), Config{Database: migrated(t), Plan: true, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	s := newServed(Project{Name: "p", Claims: claims, Limit: limit, Account: "account a"})
	return planningOf(f, s)
}

// planningOf plans a project with an empty backlog.
func planningOf(f *Fleet, s *served) *planning {
	empty := func(context.Context) (backlog.Plan, error) { return backlog.Plan{}, nil }
	return &planning{f: f, s: s, maintain: empty, now: time.Now, wait: f.c.Tick, open: map[string]bool{}}
}

// rows lists the rows as "key state generation".
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

func (p *planning) mustInsert(t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		p.queue = append(p.queue, tasks(k)...)
	}
	if err := errors.Join(p.countRows(t.Context()), p.insertRows(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// A row is due at once by the database's time, whatever the inserting machine's clock says.
func TestRowIsDue(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	p.f.clock.ahead.Store(int64(time.Hour)) // makes rows an hour early
	p.mustInsert(t, "a", "b")
	if n := number(t, p.f.db, "SELECT count(*) FROM river_job WHERE state = 'available' AND scheduled_at BETWEEN now() - interval '62 minutes' AND now() - interval '58 minutes'"); n != 2 {
		t.Errorf("%d rows are due, want 2", n)
	}
}

// While machines take all rows before the planner's next turn, its turns come more often, and afterwards less often.
func TestTurns(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	tick := p.f.c.Tick
	turn := func(want time.Duration) {
		t.Helper()
		if err := p.runOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.wait != want {
			t.Errorf("the next turn is in %s, want %s", p.wait, want)
		}
	}
	p.lastRead, p.s.Poll = time.Now(), time.Hour
	turn(tick)
	for n, want := range []time.Duration{tick / 2, tick / 4, tick / 8, tick / 16, tick / busyFactor, tick / busyFactor} {
		p.queue = append(p.queue, tasks(fmt.Sprint(n), fmt.Sprint(n, "b"))...)
		turn(want)
		if _, err := p.f.db.exec(t.Context(), "UPDATE river_job SET state = 'completed', finalized_at = now()"); err != nil {
			t.Fatal(err)
		}
		p.lastRead = time.Now()
	}
	turn(tick / busyFactor * 2)
	if _, err := p.f.db.exec(t.Context(), "UPDATE ralph_lease SET holder = 'another'"); err != nil {
		t.Fatal(err)
	}
	other := planningOf(p.f, p.s)
	for range 3 { // while another machine plans, it asks only once in a while
		if lead, err := other.holdLease(t.Context()); err != nil || lead {
			t.Errorf("two plan: %t, %v", lead, err)
		}
	}
}

// Machines share the database's time, whatever their own clocks say.
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

// As many rows are open as machines can work, one per issue. An ended row may be inserted again.
func TestFeed(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	d := p.f.db
	p.mustInsert(t, "a", "b", "c", "d", "e")
	if got := rows(t, d); len(got) != spareRows {
		t.Errorf("without a machine: %q", got)
	}
	for n := range 2 {
		if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine VALUES ($1, $1, '{"p": 1, "q": 9}', '{}', now() + interval '1 hour')`, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
	}
	p.mustInsert(t)
	if got := rows(t, d); !slices.Equal(got, []string{"a available 1", "b available 1", "c available 1", "d available 1"}) {
		t.Errorf("with two machines: %q", got)
	}
	other := planningOf(p.f, p.s)
	other.mustInsert(t, "a", "b", "c", "d")
	if got := rows(t, d); len(got) != 4 {
		t.Errorf("another planner has doubled some: %q", got)
	}
	if _, err := d.exec(t.Context(), "UPDATE river_job SET state = 'completed', finalized_at = now() WHERE args ->> 'key' IN ('a', 'b')"); err != nil {
		t.Fatal(err)
	}
	p.mustInsert(t, "a")
	if got := rows(t, d); len(got) != 6 || got[4] != "e available 1" || got[5] != "a available 1" || !p.ended {
		t.Errorf("after two have ended: %q, %t", got, p.ended)
	}
	p.s.Limit = 1
	p.mustInsert(t, "f")
	if got := rows(t, d); len(got) != 6 {
		t.Errorf("beyond the limit: %q", got)
	}
}

// tasks returns tasks for issues with these keys.
func tasks(keys ...string) (list []backlog.Task) {
	for _, k := range keys {
		list = append(list, backlog.Task{Issue: tracker.Issue{Key: k}})
	}
	return list
}

func TestPlan(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := &planning{s: &served{Project: Project{Poll: time.Minute}}, lastRead: now}
	for _, c := range []struct {
		name string
		set  func()
		in   time.Duration
		want bool
	}{
		{"just looked", func() { p.ended = true }, time.Second, false},
		{"some row has ended, and nothing waits", func() {}, 3 * time.Second, true},
		{"something waits", func() { p.queue = tasks("x") }, 3 * time.Second, false},
		{"a retry is due", func() { p.nextRead = now.Add(4 * time.Second) }, 4 * time.Second, true},
		{"not yet", func() {}, 3 * time.Second, false},
		{"the poll", func() { p.nextRead = time.Time{} }, time.Minute, true},
	} {
		c.set()
		if got := p.isDue(now.Add(c.in)); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// An issue whose provider refuses waits as long as the provider asks; the longest wait counts.
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
	s.noteFailure(now, errors.New("no disk"))
	if got := s.restLeft(now); got != restMin {
		t.Errorf("rests %s", got)
	}
	for range 20 {
		s.noteFailure(now, errors.New("no disk"))
	}
	if got := s.restLeft(now); got != restMax {
		t.Errorf("rests %s", got)
	}
}

// An agent that a run on one machine found unavailable is not used with the same account on another machine until it is
// back.
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
		list[0].Until = until.Add(-time.Minute) // earlier than the known time
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

// Two repositories with the same project name are not worked together.
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
		if err := f.checkRepository(t.Context(), Project{Name: c.project, Repository: c.repository}); errors.Is(err, ErrOtherRepository) != c.wrong {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A machine that does not plan wakes the one that does, once.
func TestWake(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	looks := 0
	p.maintain = func(context.Context) (backlog.Plan, error) { looks++; return backlog.Plan{}, nil }
	p.s.Poll = time.Hour
	turn := func(want int) {
		t.Helper()
		if err := p.runOnce(t.Context()); err != nil || looks != want {
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
	other.Stop() // after it has written the wake-up
	turn(2)
	turn(2)
}

// After a failed look, for example while the forge is away, the backlog is read again soon and not only at the next poll.
func TestLookFails(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	now, looks, away := time.Now(), 0, errors.New("away")
	p.now = func() time.Time { return now }
	p.maintain = func(context.Context) (backlog.Plan, error) { looks++; return backlog.Plan{}, away }
	p.s.Poll = time.Hour
	turn := func(when string, later time.Duration, want int) {
		t.Helper()
		now = now.Add(later)
		if err := p.runOnce(t.Context()); err != nil && !errors.Is(err, away) || looks != want {
			t.Errorf("%s: %d looks at the backlog, want %d, %v", when, looks, want, err)
		}
	}
	turn("the first", 0, 1)
	turn("at once", time.Second, 1)
	turn("soon", 10*time.Second, 2)
	turn("at once after another", time.Second, 2)
	if err := p.f.db.wake(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	turn("woken", time.Second, 3)
	away = nil
	turn("soon after the wake", 10*time.Second, 4)
	turn("after one that succeeded", 10*time.Second, 4)
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	p.mustInsert(t, "a")
	store := &postgres.Store{DB: p.f.db.pool, Project: "p", Machine: p.f.id}
	for id, ended := range map[string]time.Time{"r1": time.Now(), "r2": {}, "r3": {}} { // r2 has died, r3 is in progress
		r := journal.Record{Run: journal.Run{ID: id, Kind: journal.KindIssue, Key: "a", Started: time.Unix(int64(id[1]), 0)}, State: journal.State{Ended: ended}}
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for _, stop := range []struct {
		run  string
		want bool
	}{{"r1", false}, {"r2", false}, {"r3", true}, {"r3", false}, {"", false}} {
		if got, err := p.f.db.Stop(t.Context(), "p", "a", stop.run); err != nil || got != stop.want {
			t.Errorf("stopped %q: %t, %v", stop.run, got, err)
		}
	}
	p.mustInsert(t, "a")
	if got, err := p.f.db.Stop(t.Context(), "p", "a", ""); err != nil || !got {
		t.Errorf("stopped whichever is on: %t, %v", got, err)
	}
	if got := rows(t, p.f.db); !slices.Equal(got, []string{"a cancelled 1", "a cancelled 1"}) {
		t.Errorf("rows %q", got)
	}
}

// A pause applies to all machines: no row is inserted or begun, and each process notices it.
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
		return p.f.Pause("p").IsPaused()
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
	p.mustInsert(t, "a")
	if n := len(rows(t, d)); n != 0 || wait() == 0 || !look() || !other.Pause("p").IsPaused() || other.Pause("q").IsPaused() {
		t.Errorf("while it is paused: %d rows, a wait of %s, paused %t", n, wait(), look())
	}
	if l, err := d.Snapshot(t.Context()); err != nil || !slices.Equal(l.Paused, []string{"p"}) {
		t.Errorf("look: %v, %v", l.Paused, err)
	}
	if err := other.Pause("p").Set(false); err != nil {
		t.Fatal(err)
	}
	p.mustInsert(t)
	if n := len(rows(t, d)); n != 1 || wait() != 0 || look() {
		t.Errorf("afterwards: %d rows, a wait of %s, paused %t", n, wait(), look())
	}
}

// A project's open rows count against the slots of others only while they can be worked.
func TestSlotsThatNobodyCanUse(t *testing.T) {
	t.Parallel()
	p := planner(t, time.Hour, nil, 0)
	d, s := p.f.db, scope{name: "account a", limit: 4, fair: true}
	if _, err := d.exec(t.Context(), `INSERT INTO ralph_machine (id, name, projects, rows, expires_at) VALUES ('m', 'm', '{"p": 9, "other": 9}', '{}', now() + interval '1 hour')`); err != nil {
		t.Fatal(err)
	}
	p.mustInsert(t, "a", "b", "c")
	planningOf(p.f, &served{Project: Project{Name: "other", Account: "account a"}}).mustInsert(t, "a", "b", "c")
	free := func(when string, want bool) {
		t.Helper()
		l, ok, err := d.takeLeases(t.Context(), "p", "k", p.f.id, p.f.c.TTL, s)
		if err != nil || ok != want {
			t.Errorf("%s: a third slot of four is free: %t, %v", when, ok, err)
		}
		if ok {
			if err := l.free(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for _, key := range []string{"a", "b"} {
		if _, ok, err := d.takeLeases(t.Context(), "p", key, p.f.id, p.f.c.TTL, s); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	free("while both are worked", false)
	if err := p.f.Pause("other").Set(true); err != nil {
		t.Fatal(err)
	}
	free("while the other is paused", true)
	if err := p.f.Pause("other").Set(false); err != nil {
		t.Fatal(err)
	}
	free("when it goes on", false)
	if _, err := d.exec(t.Context(), `UPDATE ralph_machine SET projects = '{"p": 9}'`); err != nil {
		t.Fatal(err)
	}
	free("while no machine has the other", true)
}
