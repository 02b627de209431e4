package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ralph-pool/ralph/pool/journal"
)

var _ journal.Totals = (*Store)(nil)

// totals parses each record only once. Its last column follows journal.Record.CostUnknown.
const totals = `WITH r AS MATERIALIZED (
	SELECT kind, started / 86400000000000 AS day, (ended - started) / 1e9 AS seconds, (CASE WHEN strpos(record, '\u0000') > 0
		THEN regexp_replace(record, '(?<!\\)((?:\\\\)*)\\u0000', '\1', 'g') ELSE record END)::json AS record FROM ralph_run
	WHERE project = $1 AND pool = $2 AND started >= $3
), part AS (
	SELECT day, seconds, coalesce(record ->> 'agent', '') AS agent, coalesce(record ->> 'model', '') AS model,
		CASE WHEN seconds IS NULL THEN '' ELSE coalesce(record -> 'verdict' ->> 'outcome', '') END AS outcome, record -> 'facts' -> 'usage' AS used,
		coalesce((record -> 'facts' ->> 'free')::boolean, false) AS free,
		coalesce(CASE WHEN json_typeof(record -> 'facts' -> 'iterations') = 'array' THEN json_array_length(record -> 'facts' -> 'iterations') END, 0) > 0
			OR coalesce(record -> 'facts' ->> 'end', '') = '' AND record -> 'facts' -> 'open' IS NULL
			AND coalesce(record -> 'facts' ->> 'cut', '') NOT IN ('claim', 'baseline', 'prepare') AS begun,
		kind <> 'command' AND NOT coalesce((record -> 'settings' ->> 'attended')::boolean, false) AS works FROM r
)
SELECT day, agent, model, outcome, count(*) FILTER (WHERE works), coalesce(sum(seconds) FILTER (WHERE works), 0)::double precision,
	coalesce(sum((used ->> 'input')::bigint), 0)::bigint,
	coalesce(sum((used ->> 'output')::bigint), 0)::bigint, coalesce(sum((used ->> 'cache_read')::bigint), 0)::bigint,
	coalesce(sum((used ->> 'cache_write')::bigint), 0)::bigint, coalesce(sum((used ->> 'cost_usd')::double precision), 0),
	coalesce(sum((used ->> 'estimated')::bigint), 0)::bigint, coalesce(sum((used ->> 'unpriced')::bigint), 0)::bigint,
	count(*) FILTER (WHERE works AND agent <> '' AND NOT free AND ((used ->> 'unpriced')::bigint > 0 OR (begun
		OR coalesce((used ->> 'cache_read')::bigint, 0) + coalesce((used ->> 'estimated')::bigint, 0) > 0)
		AND coalesce((used ->> 'cost_usd')::double precision, 0) = 0
		AND coalesce((used ->> 'input')::bigint, 0) + coalesce((used ->> 'output')::bigint, 0) + coalesce((used ->> 'cache_write')::bigint, 0) = 0))
FROM part WHERE works OR EXISTS (SELECT FROM json_each_text(used) WHERE value::double precision > 0) GROUP BY 1, 2, 3, 4`

// dataException is PostgreSQL's class of errors about values, such as text that is not JSON.
const dataException = "22"

// Totals sums up the runs of the pool that began at since or later, on all machines. It leaves out unreadable records.
func (s *Store) Totals(ctx context.Context, pool string, since time.Time) ([]journal.Total, error) {
	rows, err := s.DB.Query(ctx, totals, s.Project, pool, since.UnixNano())
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t journal.Total, err error) {
		u := &t.Usage
		err = row.Scan(&t.Day, &t.Agent, &t.Model, &t.Outcome, &t.Runs, &t.Seconds, &u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD, &u.Estimated,
			&u.Unpriced, &t.Unknown)
		return t, err
	})
	if bad, ok := errors.AsType[*pgconn.PgError](err); ok && strings.HasPrefix(bad.Code, dataException) { // sum up the readable records here
		list, err := s.Find(ctx, journal.Query{Pool: pool, Since: since})
		return journal.Sum(list), err
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return out, nil
}
