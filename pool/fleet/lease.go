package fleet

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Leases are rows that expire by database time. After a restart of the database every holder has one TTL to renew, because
// nobody could while it was down.

// isAlive selects valid rows of ralph_lease or ralph_machine. $1 is the TTL in seconds.
const isAlive = `greatest(expires_at, pg_postmaster_start_time() + make_interval(secs => $1)) > now()`

// scope is a group in which leases are counted.
type scope struct {
	name  string
	limit int  // maximum number of leases on all machines; 0: no limit, and no lease is needed
	fair  bool // projects share the limit by their open work
}

// leases is a group of leases that one holder has taken together.
type leases struct {
	d                    *Database
	ids                  []int64 // a database that has lost some may assign them to others
	project, key, holder string
	scopes               []scope
	ttl                  time.Duration
}

// ownLeases selects the holder's leases among the IDs in $1; see leases.owner. freeLeases deletes them.
const ownLeases = "id = ANY($1) AND project = $2 AND key = $3 AND holder = $4"
const freeLeases = "DELETE FROM ralph_lease WHERE " + ownLeases

func (l *leases) owner() []any { return []any{l.ids, l.project, l.key, l.holder} }

// takeLeases takes a lease in each scope, or none; ok is false if a scope is full or its rest is for other projects. A lease for
// an issue does not end by expiry alone: a holder without the database may still work the issue while it has the claim. See
// planning.replaceDead.
func (d *Database) takeLeases(ctx context.Context, project, key, holder string, ttl time.Duration, scopes ...scope) (*leases, bool, error) {
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s scope) bool { return s.limit <= 0 })
	slices.SortFunc(scopes, func(a, b scope) int { return cmp.Compare(a.name, b.name) }) // a fixed order avoids deadlocks
	l := &leases{d: d, project: project, key: key, holder: holder, scopes: scopes, ttl: ttl}
	if len(scopes) == 0 {
		return l, true, nil
	}
	ok, err := l.tryTake(ctx, key == "")
	return l, ok, err
}

// tryTake implements takeLeases. With again, the holder had the leases before, and neither waits nor shares.
func (l *leases) tryTake(ctx context.Context, again bool) (ok bool, err error) {
	ok = true
	var ids []int64
	err = l.d.tx(ctx, func(tx pgx.Tx) error {
		if _, age, err := l.d.readServer(ctx, tx); err != nil || !again && age < l.ttl/2 {
			ok = false
			return err
		}
		if _, err := tx.Exec(ctx, freeLeases, l.owner()...); err != nil {
			return err
		}
		for _, s := range l.scopes {
			s.fair = s.fair && !again
			free, err := s.hasRoom(ctx, tx, l.project, l.ttl)
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

// serverSeen is the last seen server. Another one, such as a standby that became the primary, may lack the last leases.
// Then their holders have half a TTL to take them again before others take new ones.
type serverSeen struct {
	mu    sync.Mutex
	name  string    // guarded by mu; identifies this run of a server and its tables; empty: none yet
	since time.Time // guarded by mu; when this server was first seen, if there was another before
}

// readServer returns the name of the server and how long it has been there.
func (d *Database) readServer(ctx context.Context, from interface {
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

// hasRoom locks the scope until the transaction ends, and reports whether the project may take another lease. Open rows of
// paused projects, and of projects without a live machine, do not count. A project's planner frees the leases of keys; if
// no machine serves the project, hasRoom deletes those of dead machines.
func (s scope) hasRoom(ctx context.Context, tx pgx.Tx, project string, ttl time.Duration) (bool, error) {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('ralph ' || $1::text, 0))", s.name); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM ralph_lease WHERE scope = $2
		AND (key = '' OR expires_at < now() - interval '1 day' OR expires_at < now() - interval '15 minutes'
		AND NOT EXISTS (SELECT FROM ralph_machine m WHERE m.projects ? project AND m.expires_at > now()))
		AND NOT `+isAlive, ttl.Seconds(), s.name); err != nil {
		return false, err
	}
	held, err := countByProject(ctx, tx, "SELECT project, count(*) FROM ralph_lease WHERE scope = $1 GROUP BY project", s.name)
	if err != nil {
		return false, err
	}
	var wanted map[string]int
	if s.fair {
		wanted, err = countByProject(ctx, tx, `SELECT args ->> 'project', count(*) FROM river_job WHERE kind = '`+kind+`' AND args ->> 'account' = $2
			AND (state IN ('available', 'pending', 'running', 'retryable') OR state = 'scheduled' AND scheduled_at < now() + interval '1 minute')
			AND NOT EXISTS (SELECT FROM ralph_pause WHERE project = args ->> 'project')
			AND EXISTS (SELECT FROM ralph_machine WHERE projects ? (args ->> 'project') AND `+isAlive+`) GROUP BY 1`, ttl.Seconds(), s.name)
	}
	return mayTake(s.limit, project, held, wanted), err
}

func countByProject(ctx context.Context, tx pgx.Tx, sql string, args ...any) (map[string]int, error) {
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

// mayTake reports whether a project may hold one more slot, given the slots held and wanted by each project. All projects
// get equal shares, and more only if others leave some unused. Without wanted, the first to come gets the slot.
func mayTake(limit int, project string, held, wanted map[string]int) bool {
	total := 0
	for _, n := range held {
		total += n
	}
	if total >= limit || len(wanted) == 0 {
		return total < limit
	}
	level := 1 // the smallest number of slots per project with which all are used
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

// renew extends the leases by their TTL from now, and takes lost ones again; false: one could not be taken again.
func (l *leases) renew(ctx context.Context) (bool, error) {
	if len(l.scopes) == 0 {
		return true, nil
	}
	n, err := l.d.exec(ctx, "UPDATE ralph_lease SET expires_at = now() + make_interval(secs => $5) WHERE "+ownLeases, append(l.owner(), l.ttl.Seconds())...)
	if err != nil || n == len(l.scopes) {
		return err == nil, err
	}
	return l.tryTake(ctx, true)
}

// free returns the leases. If that fails, they expire.
func (l *leases) free(ctx context.Context) error {
	if len(l.ids) == 0 {
		return nil
	}
	_, err := l.d.exec(context.WithoutCancel(ctx), freeLeases, l.owner()...)
	return err
}

// renewUntil renews the leases until ctx ends. It calls lost once if one is lost. It keeps trying while the database does not
// answer, because the right to work comes from the claim in git.
func (l *leases) renewUntil(ctx context.Context, lost func()) {
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
