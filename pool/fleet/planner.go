package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/internal/tally"
)

// planning plans one project. It belongs to one goroutine. Its data need not survive the process.
type planning struct {
	f        *Fleet
	s        *served
	maintain func(context.Context) (backlog.Plan, error)
	now      func() time.Time

	lease   *leases   // nil: another machine plans
	renewed time.Time // when the lease was last taken, renewed or requested

	queue    []backlog.Task  // tasks of the last look at the backlog that are not inserted yet, in order
	open     map[string]bool // keys of open rows at the last count
	waiting  int             // number of open rows that no machine had taken
	capacity int             // maximum number of open rows
	ended    bool            // a row has ended since the last look at the backlog
	idle     error           // why the last look at the backlog led to no work; nil if it did
	lastRead time.Time       // time of the last look at the backlog; zero: never
	nextRead time.Time       // when the first waiting issue may be worked, or a failed look is repeated; zero: neither
	lastReap time.Time
	starved  bool          // machines had taken all rows, and more tasks were waiting
	wait     time.Duration // delay until the next turn
}

const (
	minReadInterval = 2 * time.Second  // minimum time between looks at the backlog
	rereadDelay     = 10 * time.Second // delay after a failed look at the backlog
	// A free slot should find a row soon: while machines take all rows between two turns, turns come more often, by this
	// factor.
	busyFactor = 20
)

// plan plans the project until ctx ends, while this process holds the project's lease.
func (f *Fleet) plan(ctx context.Context, s *served) {
	(&planning{f: f, s: s, maintain: s.Pool.Maintain, now: time.Now, wait: f.c.Tick}).run(ctx)
}

func (p *planning) run(ctx context.Context) {
	defer func() {
		if p.lease != nil {
			_ = p.lease.free(ctx) // otherwise it expires
		}
	}()
	next := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.s.rowFreed:
		case <-next.C:
		}
		switch err := p.runOnce(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil:
			p.s.notePlanning(p.idle)
		case !p.f.away(ctx):
			if p.s.notePlanning(err); p.s.isNews("", err) {
				p.f.c.Log.Warn("backlog not planned", "project", p.s.Name, "error", err)
			}
		}
		next.Reset(p.wait)
	}
}

// runOnce does what is due.
func (p *planning) runOnce(ctx context.Context) error {
	p.starved = false
	defer p.setPace()
	if lead, err := p.holdLease(ctx); err != nil || !lead {
		return err
	}
	now := p.now()
	if now.Sub(p.lastReap) >= p.f.c.TTL/3 {
		p.lastReap = now
		if err := p.replaceDead(ctx); err != nil {
			return err
		}
	}
	if err := p.countRows(ctx); err != nil {
		return err
	}
	if p.isDue(now) {
		p.lastRead = now
		if err := p.readBacklog(ctx); err != nil {
			return err
		}
		if lead, err := p.holdLease(ctx); err != nil || !lead { // reading the backlog may have taken long
			return err
		}
	}
	return p.insertRows(ctx)
}

// setPace sets the time of the next turn.
func (p *planning) setPace() {
	if p.starved {
		p.wait = max(p.wait/2, p.f.c.Tick/busyFactor)
	} else {
		p.wait = min(2*p.wait, p.f.c.Tick)
	}
}

// holdLease takes the lease to plan the project, or renews it in time, and reports whether this process holds it.
func (p *planning) holdLease(ctx context.Context) (bool, error) {
	now, ttl := p.now(), p.f.c.TTL
	age := now.Sub(p.renewed)
	if p.lease != nil {
		if age < ttl/3 {
			return true, nil
		}
		held, err := p.lease.renew(ctx)
		if err == nil {
			p.renewed = now
			if !held { // problems are now another machine's
				p.lease, p.idle = nil, nil
			}
		}
		return held, err
	}
	if !p.renewed.IsZero() && age < ttl/10 {
		return false, nil
	}
	p.renewed = now
	lease, ok, err := p.f.db.takeLeases(ctx, p.s.Name, "", p.f.id, ttl, scope{name: "planner of " + p.s.Name, limit: 1})
	if err != nil || !ok {
		return false, err
	}
	p.lease, p.lastRead, p.queue, p.open = lease, time.Time{}, nil, map[string]bool{}
	p.f.c.Log.Info("this machine plans", "project", p.s.Name)
	return true, nil
}

func (p *planning) isDue(now time.Time) bool {
	age := now.Sub(p.lastRead)
	return age >= p.s.Poll || age >= minReadInterval && (len(p.queue) == 0 && p.ended || !p.nextRead.IsZero() && !now.Before(p.nextRead))
}

// readBacklog reads the backlog.
func (p *planning) readBacklog(ctx context.Context) error {
	plan, err := p.maintain(ctx)
	if err != nil {
		p.nextRead = p.now().Add(rereadDelay)
		p.idle = err
		return err
	}
	p.queue, p.nextRead, p.ended = plan.Tasks(), plan.RetryAt(p.now()), false
	why := plan.Spent()
	if len(p.open) > 0 { // an open run may leave a part of a cap unused
		why = nil
	}
	if p.idle = why; why != nil && p.s.isNews("", why) {
		p.f.c.Log.Warn("backlog not worked", "project", p.s.Name, "error", why)
	}
	return nil
}

// spareRows is the number of rows beyond those that the machines can work at once, so that a free slot finds one. More rows
// would follow an outdated order of the backlog, or find no slot because of the project's limit.
const spareRows = 2

// countRows reads the project's open rows, their maximum number, and whether somebody has called Wake.
func (p *planning) countRows(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var keys []string
	var paused, woken bool
	found := p.f.db.pool.QueryRow(ctx, `WITH wake AS (DELETE FROM ralph_wake WHERE project = $2 RETURNING 1)
		SELECT coalesce(array_agg(args ->> 'key'), '{}'), count(*) FILTER (WHERE state <> 'running'),
			(SELECT coalesce(sum((projects ->> $2)::integer), 0) FROM ralph_machine WHERE `+isAlive+`),
			EXISTS (SELECT FROM ralph_pause WHERE project = $2), EXISTS (SELECT FROM wake)
		FROM river_job WHERE queue = $3 AND `+isOpen, p.f.c.TTL.Seconds(), p.s.Name, queueOf(p.s.Name))
	if err := found.Scan(&keys, &p.waiting, &p.capacity, &paused, &woken); err != nil {
		return p.f.db.hide(err)
	}
	p.capacity += spareRows
	if p.s.Limit > 0 {
		p.capacity = min(p.capacity, p.s.Limit)
	}
	if paused {
		p.capacity = 0
	}
	if woken {
		p.lastRead = time.Time{}
	}
	before := p.open
	p.open = map[string]bool{}
	for _, k := range keys {
		p.open[k] = true
	}
	for k := range before {
		p.ended = p.ended || !p.open[k]
	}
	return nil
}

// insertRows inserts rows up to the capacity.
func (p *planning) insertRows(ctx context.Context) error {
	p.queue = slices.DeleteFunc(p.queue, func(t backlog.Task) bool { return p.open[t.Issue.Key] })
	n := min(len(p.queue), p.capacity-len(p.open))
	if n <= 0 {
		return nil
	}
	p.starved = p.waiting == 0
	var list []river.InsertManyParams
	for _, t := range p.queue[:n] {
		priority, follow := priorityIssue, t.Follow != nil
		if follow {
			priority = priorityFollowUp
		}
		list = append(list, insertion(row{Project: p.s.Name, Key: t.Issue.Key, Generation: 1, FollowUp: follow, Account: p.s.Account}, priority))
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	results, err := p.f.client.InsertMany(call, list)
	if err != nil {
		return p.f.db.hide(err)
	}
	for i, r := range results { // another planner has inserted the row of a duplicate
		key := p.queue[i].Issue.Key
		p.open[key] = true
		p.f.c.Log.Debug("row", "project", p.s.Name, "issue", key, "row", r.Job.ID, "there already", r.UniqueSkippedAsDuplicate)
	}
	p.queue = p.queue[n:]
	return nil
}

// deadRow is a running row without a live process: the process is gone, or never learned that it has the row.
type deadRow struct {
	ID      int64
	Attempt int
	Args    row
}

// deadLease is a lease whose holder is gone or cut off.
type deadLease struct {
	ID  int64
	Key string
}

// replaceDead deletes dead machines and replaces dead rows. It frees the slots of dead machines once nobody holds the claim of
// their issue. It changes River's table directly: River has no heartbeat and would leave such a row running.
func (p *planning) replaceDead(ctx context.Context) error {
	if _, err := p.f.db.exec(ctx, "DELETE FROM ralph_machine WHERE NOT "+isAlive, p.f.c.TTL.Seconds()); err != nil {
		return err
	}
	list, err := query(ctx, p.f.db, pgx.RowToStructByPos[deadRow], `SELECT id, attempt, args FROM river_job
		WHERE kind = '`+kind+`' AND queue = $2 AND state = 'running'
		AND NOT EXISTS (SELECT 1 FROM ralph_machine m WHERE m.id = attempted_by[cardinality(attempted_by)] AND `+isAlive+`
			AND (river_job.id = ANY(m.rows) OR attempted_at > now() - make_interval(secs => $1)))`,
		p.f.c.TTL.Seconds(), queueOf(p.s.Name))
	if err != nil {
		return err
	}
	slots, err := query(ctx, p.f.db, pgx.RowToStructByPos[deadLease],
		"SELECT id, key FROM ralph_lease WHERE project = $2 AND key <> '' AND NOT "+isAlive, p.f.c.TTL.Seconds(), p.s.Name)
	if err != nil || len(list)+len(slots) == 0 {
		return err
	}
	claims, err := p.s.Claims.Claims(ctx)
	if err != nil {
		return err
	}
	free := func(key string) bool { return claims[key].Err == nil && !tally.Held(claims[key]) }
	for _, d := range list {
		if free(d.Args.Key) {
			err = errors.Join(err, p.replace(ctx, d))
		}
	}
	for _, s := range slots {
		if free(s.Key) {
			_, gone := p.f.db.exec(ctx, "DELETE FROM ralph_lease WHERE id = $2 AND NOT "+isAlive, p.f.c.TTL.Seconds(), s.ID)
			err = errors.Join(err, gone)
		}
	}
	return err
}

// replace ends a dead row and inserts the next generation, in one transaction. Later writes of the old process to the old
// row have no effect, because that row has ended.
func (p *planning) replace(ctx context.Context, d deadRow) error {
	return p.f.db.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = $1 AND state = 'running' AND attempt = $2",
			d.ID, d.Attempt)
		if err != nil || tag.RowsAffected() == 0 { // the row has ended meanwhile
			return err
		}
		next := d.Args
		next.Generation++
		list, err := p.f.client.InsertManyTx(ctx, tx, []river.InsertManyParams{insertion(next, priorityAgain)})
		if err == nil {
			p.f.c.Log.Info("row of a dead process replaced", "project", p.s.Name, "issue", next.Key, "generation", next.Generation, "row", list[0].Job.ID)
		}
		return err
	})
}
