package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Leases are rows with an expiry in database time. After a restart of the database every holder has one TTL to renew: nobody
// could while it was down.

// alive holds for a row of ralph_lease or ralph_machine whose TTL, in seconds, is $1.
const alive = `greatest(expires_at, pg_postmaster_start_time() + make_interval(secs => $1)) > now()`

// scope is what leases of a kind are counted in.
type scope struct {
	name  string
	limit int  // leases at the same time on all machines; 0: no limit, and none is taken
	fair  bool // projects share the limit by what they have to do
}

// leases are what a holder has taken together.
type leases struct {
	d                    *Database
	ids                  []int64 // a database that has lost some gives them again, to others
	project, key, holder string
	scopes               []scope
	ttl                  time.Duration
}

// own holds for the leases among those with the ids $1 that are the holder's; see leases.owner. freeLeases gives them back.
const own = "id = ANY($1) AND project = $2 AND key = $3 AND holder = $4"
const freeLeases = "DELETE FROM ralph_lease WHERE " + own

func (l *leases) owner() []any { return []any{l.ids, l.project, l.key, l.holder} }

// take takes a lease in each scope, or none; false: a scope is full, or the rest of it is for other projects. A lease for an
// issue does not end by its expiry alone: whoever has lost the database may still work the issue, as long as it has the claim.
// See planning.reap.
func (d *Database) take(ctx context.Context, project, key, holder string, ttl time.Duration, scopes ...scope) (*leases, bool, error) {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s scope) bool { return s.limit <= 0 })
	slices.SortFunc(scopes, func(a, b scope) int { return cmp.Compare(a.name, b.name) }) // nobody waits in a circle
	l := &leases{d: d, project: project, key: key, holder: holder, scopes: scopes, ttl: ttl}
	if len(scopes) == 0 {
		return l, true, nil
	}
	ok, err := l.take(ctx, key == "")
	return l, ok, err
}

// take is Database.take; again: for whoever has had the leases, which is neither to wait nor to share.
func (l *leases) take(ctx context.Context, again bool) (ok bool, err error) {
	ok = true
	var ids []int64
	err = l.d.tx(ctx, func(tx pgx.Tx) error {
		if _, age, err := l.d.see(ctx, tx); err != nil || !again && age < l.ttl/2 {
			ok = false
			return err
		}
		if _, err := tx.Exec(ctx, freeLeases, l.owner()...); err != nil {
			return err
		}
		for _, s := range l.scopes {
			s.fair = s.fair && !again
			free, err := s.free(ctx, tx, l.project, l.ttl)
			if err != nil || !free {
				ok = false
				return err
			}
		}
		for _, s := range l.scopes {
			var id int64
			made := tx.QueryRow(ctx, `INSERT INTO ralph_lease (scope, project, key, holder, expires_at)
				VALUES ($1, $2, $3, $4, now() + make_interval(secs => $5)) RETURNING id`, s.name, l.project, l.key, l.holder, l.ttl.Seconds())
			if err := made.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return nil
	})
	if ok = ok && err == nil; ok {
		l.ids = ids
	}
	return ok, err
}

// serverSeen is the copy of the data that was seen last. Another one may lack the last leases, such as a standby that has become the
// primary: their holders have half a TTL to take them again before anybody takes new ones.
type serverSeen struct {
	mu    sync.Mutex
	name  string    // guarded by mu; of this run of a server and its tables; empty: none was seen
	since time.Time // guarded by mu; when this one was seen first, if another was there before
}

// see returns the name of the server, and for how long it has been there.
func (d *Database) see(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (name string, age time.Duration, err error) {
	if err = from.QueryRow(ctx, "SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()), 'ralph_lease'::regclass::oid)").Scan(&name); err != nil {
		return "", 0, d.hide(err)
	}
	s := &d.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name != "" && s.name != name {
		s.since = time.Now()
	}
	s.name = name
	return name, time.Since(s.since), nil
}

// free locks the scope until the transaction ends, and reports whether the project may take another lease. Open rows that nobody
// works now, as their project is paused or no machine lives that has it, keep nothing from others. Leases of keys are
// freed by the planner of their project; where no machine serves that any more, a dead machine's end here.
func (s scope) free(ctx context.Context, tx pgx.Tx, project string, ttl time.Duration) (bool, error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('ralph ' || $1::text, 0))", s.name); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM ralph_lease WHERE scope = $2
		AND (key = '' OR expires_at < now() - interval '1 day' OR expires_at < now() - interval '15 minutes'
		AND NOT EXISTS (SELECT FROM ralph_machine m WHERE m.projects ? project AND m.expires_at > now())) AND NOT `+alive, ttl.Seconds(), s.name); err != nil {
		return false, err
	}
	held, err := counts(ctx, tx, "SELECT project, count(*) FROM ralph_lease WHERE scope = $1 GROUP BY project", s.name)
	if err != nil {
		return false, err
	}
	var wanted map[string]int
	if s.fair {
		wanted, err = counts(ctx, tx, `SELECT args ->> 'project', count(*) FROM river_job WHERE kind = '`+kind+`' AND args ->> 'account' = $2
			AND (state IN ('available', 'pending', 'running', 'retryable') OR state = 'scheduled' AND scheduled_at < now() + interval '1 minute')
			AND NOT EXISTS (SELECT FROM ralph_pause WHERE project = args ->> 'project')
			AND EXISTS (SELECT FROM ralph_machine WHERE projects ? (args ->> 'project') AND `+alive+`) GROUP BY 1`, ttl.Seconds(), s.name)
	}
	return mayTake(s.limit, project, held, wanted), err
}

func counts(ctx context.Context, tx pgx.Tx, sql string, args ...any) (map[string]int, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	var name string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error { out[name] = n; return nil })
	return out, err
}

// mayTake reports whether a project may hold one more of the slots, given what each holds and has open. Each project may have
// as many as the others, and more only as far as they leave some unused. Without wanted, the first to come is served.
func mayTake(limit int, project string, held, wanted map[string]int) bool {
	total := 0
	for _, n := range held {
		total += n
	}
	if total >= limit || len(wanted) == 0 {
		return total < limit
	}
	level := 1 // the least number of slots a project at which all are used
	for {
		used, more := 0, false
		for _, n := range wanted {
			used += min(n, level)
			more = more || n > level
		}
		if used >= limit || !more {
			return held[project] < level || !more
		}
		level++
	}
}

// renew makes the leases last for their TTL from now on, and takes those again that are lost; false: there is no room for one.
func (l *leases) renew(ctx context.Context) (bool, error) {
	if len(l.scopes) == 0 {
		return true, nil
	}
	n, err := l.d.exec(ctx, "UPDATE ralph_lease SET expires_at = now() + make_interval(secs => $5) WHERE "+own, append(l.owner(), l.ttl.Seconds())...)
	if err != nil || n == len(l.scopes) {
		return err == nil, err
	}
	return l.take(ctx, true)
}

// free gives the leases back. What fails is given back by their expiry.
func (l *leases) free(ctx context.Context) error {
	if len(l.ids) == 0 {
		return nil
	}
	_, err := l.d.exec(context.WithoutCancel(ctx), freeLeases, l.owner()...)
	return err
}

// keep renews the leases until ctx ends, and calls lost once if one is lost. A database that does not answer is waited for:
// the claim in git is what the work rests on.
func (l *leases) keep(ctx context.Context, lost func()) {
	if len(l.scopes) == 0 {
		return
	}
	ticker := time.NewTicker(l.ttl / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if held, err := l.renew(ctx); err == nil && !held {
			lost()
			return
		}
	}
}
