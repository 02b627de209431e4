package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
)

var _ journal.Totals = (*Store)(nil)

// totals parses each record only once and extracts only short values. Its last column follows journal.Record.CostUnknown.
const totals = `WITH r AS MATERIALIZED (
	SELECT started, ended, kind, CASE WHEN json_valid(record) THEN json_extract(record, '$.agent', '$.model', '$.verdict.outcome', '$.facts.usage.input',
		'$.facts.usage.output', '$.facts.usage.cache_read', '$.facts.usage.cache_write', '$.facts.usage.cost_usd', '$.facts.usage.estimated',
		'$.facts.usage.unpriced', '$.settings.attended', '$.facts.free') END AS part,
		CASE WHEN json_valid(record) THEN coalesce(json_array_length(record, '$.facts.iterations'), 0) > 0
			OR coalesce(json_extract(record, '$.facts.end'), '') = '' AND json_extract(record, '$.facts.open') IS NULL
			AND coalesce(json_extract(record, '$.facts.cut'), '') NOT IN ('claim', 'baseline', 'prepare') END AS begun
	FROM runs WHERE pool = ? AND started >= ?
), s AS (
	SELECT *, kind <> 'command' AND NOT coalesce(part ->> 10, 0) AS works FROM r WHERE part IS NOT NULL
)
SELECT started / 86400000000000, coalesce(part ->> 0, ''), coalesce(part ->> 1, ''), CASE WHEN ended IS NULL THEN '' ELSE coalesce(part ->> 2, '') END,
	count(*) FILTER (WHERE works), coalesce(sum((ended - started) / 1e9) FILTER (WHERE works), 0.0), coalesce(sum(part ->> 3), 0), coalesce(sum(part ->> 4), 0),
	coalesce(sum(part ->> 5), 0), coalesce(sum(part ->> 6), 0), coalesce(sum(part ->> 7), 0.0), coalesce(sum(part ->> 8), 0),
	coalesce(sum(part ->> 9), 0), count(*) FILTER (WHERE works AND coalesce(part ->> 0, '') <> '' AND NOT coalesce(part ->> 11, 0) AND (part ->> 9 > 0
		OR (begun OR coalesce(part ->> 5, 0) + coalesce(part ->> 8, 0) > 0)
		AND coalesce(part ->> 7, 0) = 0 AND coalesce(part ->> 3, 0) + coalesce(part ->> 4, 0) + coalesce(part ->> 6, 0) = 0))
FROM s WHERE works OR coalesce(part ->> 3, 0) + coalesce(part ->> 4, 0) + coalesce(part ->> 5, 0) + coalesce(part ->> 6, 0) + coalesce(part ->> 7, 0)
	+ coalesce(part ->> 8, 0) + coalesce(part ->> 9, 0) > 0 GROUP BY 1, 2, 3, 4`

// Totals sums up the runs of the pool that began at since or later. It leaves out damaged records.
func (s *Store) Totals(ctx context.Context, pool string, since time.Time) ([]journal.Total, error) {
	rows, err := s.look.QueryContext(ctx, totals, pool, since.UnixNano())
	if err != nil {
		return nil, s.failed("read journal", err)
	}
	defer rows.Close()
	var out []journal.Total
	for rows.Next() {
		var t journal.Total
		u := &t.Usage
		if err := rows.Scan(&t.Day, &t.Agent, &t.Model, &t.Outcome, &t.Runs, &t.Seconds,
			&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite, &u.CostUSD, &u.Estimated, &u.Unpriced, &t.Unknown); err != nil {
			return nil, s.failed("read journal", err)
		}
		out = append(out, t)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, s.failed("read journal", err)
	}
	return out, nil
}
