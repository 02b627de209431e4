package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/tally"
)

// planning is the planner of one project. It belongs to one goroutine; what it forgets it finds again.
type planning struct {
	f     *Fleet
	s     *served
	lease *leases // nil: another machine plans

	queue  []task          // what the last look at the backlog has left to insert, in order
	open   map[string]bool // rows that were open at the last look at them, by key
	ended  bool            // some row has ended since the backlog was looked at
	looked time.Time       // at the backlog; zero: never
	due    time.Time       // when a waiting issue may be worked again; zero: none is known
	reaped time.Time
	failed bool
	moved  time.Time // when a row was last found to have ended, or was inserted
}

// Rows are looked at so much more often while they come and go, and for a while after: a slot that is free is to find a row soon.
const busier, busyTime = 20, time.Second

// task is an issue for a row.
type task struct {
	key    string
	follow bool
}

// replan is the least time between looks at the backlog.
const replan = 2 * time.Second

// plan plans the project while this process has the lease for it, until ctx ends.
func (f *Fleet) plan(ctx context.Context, s *served) {
	p := &planning{f: f, s: s}
	defer func() {
		if p.lease != nil {
			_ = p.lease.free(ctx) // else it expires
		}
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			p.looked = time.Time{}
		case <-s.free:
		case <-next.C:
		}
		err := p.turn(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !p.failed && !f.away(ctx) {
			f.c.Log.Warn("backlog not planned", "project", s.Name, "error", err)
		}
		p.failed = err != nil
		if time.Since(p.moved) < busyTime {
			next.Reset(f.c.Tick / busier)
		} else {
			next.Reset(f.c.Tick)
		}
	}
}

// turn does what is due.
func (p *planning) turn(ctx context.Context) error {
	if lead, err := p.leads(ctx); err != nil || !lead {
		return err
	}
	now := time.Now()
	if wait := p.f.c.Life / 3; now.Sub(p.reaped) >= wait {
		p.reaped = now
		if err := p.reap(ctx); err != nil {
			return err
		}
	}
	if err := p.count(ctx); err != nil {
		return err
	}
	if p.isDue(now) {
		p.looked = now
		if err := p.look(ctx); err != nil {
			return err
		}
		if lead, err := p.leads(ctx); err != nil || !lead { // it may have taken long
			return err
		}
	}
	return p.feed(ctx)
}

// leads takes or renews the lease to plan the project.
func (p *planning) leads(ctx context.Context) (bool, error) {
	if p.lease != nil {
		held, err := p.lease.renew(ctx)
		if err == nil && !held {
			p.lease = nil
		}
		return held, err
	}
	lease, ok, err := p.f.db.take(ctx, p.s.Name, "", p.f.id, p.f.c.Life, scope{name: "planner of " + p.s.Name, limit: 1})
	if err != nil || !ok {
		return false, err
	}
	p.lease, p.looked, p.queue, p.open = lease, time.Time{}, nil, map[string]bool{}
	p.f.c.Log.Info("this machine plans", "project", p.s.Name)
	return true, nil
}

func (p *planning) isDue(now time.Time) bool {
	age := now.Sub(p.looked)
	return age >= p.s.Poll || age >= replan && (len(p.queue) == 0 && p.ended || !p.due.IsZero() && !now.Before(p.due))
}

// look lists the backlog.
func (p *planning) look(ctx context.Context) error {
	plan, err := p.s.Pool.Maintain(ctx)
	if err != nil {
		return err
	}
	p.queue, p.due, p.ended = tasks(plan), due(plan, time.Now()), false
	return nil
}

// tasks are what a plan has for rows, in its order.
func tasks(plan pool.Plan) (out []task) {
	for _, f := range plan.FollowUp {
		out = append(out, task{f.Key, true})
	}
	for _, i := range plan.Work {
		if !slices.ContainsFunc(out, func(t task) bool { return t.key == i.Key }) {
			out = append(out, task{i.Key, false})
		}
	}
	return out
}

// due is when the first of the waiting issues may be worked again; zero: none is known.
func due(plan pool.Plan, now time.Time) (at time.Time) {
	for _, k := range plan.Skipped {
		if t := k.Skip.Until; (k.Skip.Code == journal.SkipRetry || k.Skip.Code == journal.SkipCap) && t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

// count looks which rows of the project are open.
func (p *planning) count(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, err := p.f.db.pool.Query(ctx, `SELECT args ->> 'key' FROM river_job
		WHERE kind = '`+kind+`' AND queue = $1 AND state IN ('available', 'pending', 'running', 'retryable', 'scheduled')`, queueOf(p.s.Name))
	if err != nil {
		return p.f.db.hide(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return p.f.db.hide(err)
	}
	open := map[string]bool{}
	for _, k := range keys {
		open[k] = true
	}
	for k := range p.open {
		if !open[k] {
			p.ended, p.moved = true, time.Now()
		}
	}
	p.open = open
	return nil
}

// ahead is how many rows wait beside those that the machines can work at once, so that a free slot finds one. With more, the
// order of the backlog would be that of an earlier look; beyond the project's limit they would only find no slot.
const ahead = 2

// feed inserts rows while there are fewer than the machines can work.
func (p *planning) feed(ctx context.Context) error {
	p.queue = slices.DeleteFunc(p.queue, func(t task) bool { return p.open[t.key] })
	if len(p.queue) == 0 {
		return nil
	}
	most, err := p.capacity(ctx)
	if err != nil {
		return err
	}
	n := min(len(p.queue), most-len(p.open))
	if n <= 0 {
		return nil
	}
	var list []river.InsertManyParams
	for _, t := range p.queue[:n] {
		priority := priorityIssue
		if t.follow {
			priority = priorityFollowUp
		}
		list = append(list, insertion(row{Project: p.s.Name, Key: t.key, Generation: 1, FollowUp: t.follow, Account: p.s.Account}, priority))
	}
	var results []*rivertype.JobInsertResult
	if err := p.f.db.tx(ctx, func(tx pgx.Tx) (err error) {
		results, err = p.f.insert(ctx, tx, list...)
		return err
	}); err != nil {
		return err
	}
	for i, r := range results { // a duplicate is a row that another planner has inserted
		p.open[p.queue[i].key] = true
		p.f.c.Log.Debug("row", "project", p.s.Name, "issue", p.queue[i].key, "row", r.Job.ID, "there already", r.UniqueSkippedAsDuplicate)
	}
	p.queue, p.moved = p.queue[n:], time.Now()
	return nil
}

// insert inserts rows that are due at once, by the database's time. River takes this machine's: rows of one whose clock is ahead
// would wait for theirs.
func (f *Fleet) insert(ctx context.Context, tx pgx.Tx, list ...river.InsertManyParams) ([]*rivertype.JobInsertResult, error) {
	results, err := f.client.InsertManyTx(ctx, tx, list)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for _, r := range results {
		ids = append(ids, r.Job.ID)
	}
	_, err = tx.Exec(ctx, "UPDATE river_job SET scheduled_at = now() WHERE id = ANY($1) AND state = 'available'", ids)
	return results, err
}

// capacity is how many rows of the project may be open.
func (p *planning) capacity(ctx context.Context) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var paused bool
	err = p.f.db.pool.QueryRow(ctx, "SELECT coalesce(sum((projects ->> $2)::integer), 0), EXISTS (SELECT FROM ralph_pause WHERE project = $2) FROM ralph_machine WHERE "+alive,
		p.f.c.Life.Seconds(), p.s.Name).Scan(&n, &paused)
	if paused || err != nil {
		return 0, p.f.db.hide(err)
	}
	if n += ahead; p.s.Limit > 0 {
		n = min(n, p.s.Limit)
	}
	return n, nil
}

// dead is a row that nobody works: its process is gone, or has never learnt that it got the row, because the connection broke.
type dead struct {
	ID      int64
	Attempt int
	Args    row
}

// slot is a lease whose holder is gone, or cut off.
type slot struct {
	ID  int64
	Key string
}

// reap replaces dead rows, and gives back what they held, once nobody holds the claim of their issue any more. That changes
// River's table itself: River knows no heartbeat, and leaves such a row running.
func (p *planning) reap(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	rows, err := p.f.db.pool.Query(call, `SELECT id, attempt, args FROM river_job WHERE kind = '`+kind+`' AND queue = $2 AND state = 'running'
		AND NOT EXISTS (SELECT 1 FROM ralph_machine m WHERE m.id = attempted_by[cardinality(attempted_by)] AND `+alive+`
			AND (river_job.id = ANY(m.rows) OR attempted_at > now() - make_interval(secs => $1)))`,
		p.f.c.Life.Seconds(), queueOf(p.s.Name))
	if err != nil {
		return p.f.db.hide(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[dead])
	if err != nil {
		return p.f.db.hide(err)
	}
	rows, err = p.f.db.pool.Query(call, "SELECT id, key FROM ralph_lease WHERE project = $2 AND key <> '' AND NOT "+alive, p.f.c.Life.Seconds(), p.s.Name)
	if err != nil {
		return p.f.db.hide(err)
	}
	slots, err := pgx.CollectRows(rows, pgx.RowToStructByPos[slot])
	if err != nil || len(list)+len(slots) == 0 {
		return p.f.db.hide(err)
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
			_, gone := p.f.db.exec(ctx, "DELETE FROM ralph_lease WHERE id = $2 AND NOT "+alive, p.f.c.Life.Seconds(), s.ID)
			err = errors.Join(err, gone)
		}
	}
	return err
}

// replace ends a dead row and inserts the next generation, in one transaction. What its process still writes to the old row
// meets a row that is over.
func (p *planning) replace(ctx context.Context, d dead) error {
	return p.f.db.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE id = $1 AND state = 'running' AND attempt = $2",
			d.ID, d.Attempt)
		if err != nil || tag.RowsAffected() == 0 { // it has ended meanwhile
			return err
		}
		next := d.Args
		next.Generation++
		list, err := p.f.insert(ctx, tx, insertion(next, priorityAgain))
		if err == nil {
			p.f.c.Log.Info("row of a dead process replaced", "project", p.s.Name, "issue", next.Key, "generation", next.Generation, "row", list[0].Job.ID)
		}
		return err
	})
}
