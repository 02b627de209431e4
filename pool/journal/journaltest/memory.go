// Package journaltest provides an in-memory [journal.Store] and the conformance suite for stores. Every implementation of a
// store calls [Run] from its own tests.
package journaltest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Memory is a store without persistence. It copies records through JSON, so that callers share no data with it. The zero
// value is empty and ready for use. It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	records map[string]kept                    // guarded by mu; by run
	spend   map[spender]map[int64]agents.Usage // guarded by mu; by day
}

// kept is a record with the fields that queries use, so that records that do not match need not be decoded.
type kept struct {
	asked journal.Record
	text  []byte
}

// spender identifies a run of a pool.
type spender struct{ pool, run string }

var (
	_ journal.Store  = (*Memory)(nil)
	_ journal.Totals = (*Memory)(nil)
)

// Save inserts or replaces the record of a run.
func (m *Memory) Save(ctx context.Context, r journal.Record) error {
	text, err := json.Marshal(r)
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return fmt.Errorf("journal run %s: %w", r.ID, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = map[string]kept{}
	}
	m.records[r.ID] = kept{journal.Record{
		Run:   journal.Run{ID: r.ID, Pool: r.Pool, Key: r.Key, Kind: r.Kind, Started: r.Started},
		State: journal.State{Ended: r.Ended},
	}, text}
	m.note(spender{r.Pool, r.ID}, r.Facts.Metered(), time.Now())
	return nil
}

// note adds the increase of a run's usage to a day. The caller holds mu.
func (m *Memory) note(by spender, used agents.Usage, at time.Time) {
	used = journal.Bounded(used)
	var known agents.Usage
	for _, u := range m.spend[by] {
		known = known.Add(u)
	}
	if m.spend == nil {
		m.spend = map[spender]map[int64]agents.Usage{}
	}
	if m.spend[by] == nil {
		m.spend[by] = map[int64]agents.Usage{}
	}
	m.spend[by][journal.Day(at)] = m.spend[by][journal.Day(at)].Add(used.Minus(known))
}

// Spend records a run's total usage.
func (m *Memory) Spend(ctx context.Context, pool, run string, used agents.Usage, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() == nil {
		m.note(spender{pool, run}, used, at)
	}
	return ctx.Err()
}

// Spent returns the pool's usage since the beginning of two UTC days.
func (m *Memory) Spent(ctx context.Context, pool string, since, later time.Time) (all, lately agents.Usage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for by, days := range m.spend {
		for day, used := range days {
			if by.pool == pool && day >= journal.Day(since) {
				all = all.Add(used)
			}
			if by.pool == pool && day >= journal.Day(later) {
				lately = lately.Add(used)
			}
		}
	}
	return all, lately, ctx.Err()
}

// Forget deletes the record of a run.
func (m *Memory) Forget(ctx context.Context, run string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, run)
	return ctx.Err()
}

// Find returns the matching records, oldest first.
func (m *Memory) Find(ctx context.Context, q journal.Query) ([]journal.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []journal.Record
	for run, k := range m.records {
		if !matches(k.asked, q) {
			continue
		}
		var r journal.Record
		if err := json.Unmarshal(k.text, &r); err != nil {
			return nil, fmt.Errorf("read journal: run %s: %w", run, err)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b journal.Record) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	if q.Latest {
		out = latest(out)
	}
	if q.Limit > 0 {
		end := max(0, len(out)-q.Skip)
		out = out[max(0, end-q.Limit):end]
	}
	return out, ctx.Err()
}

// Totals sums up the runs of the pool that began at since or later.
func (m *Memory) Totals(ctx context.Context, pool string, since time.Time) ([]journal.Total, error) {
	list, err := m.Find(ctx, journal.Query{Pool: pool, Since: since})
	return journal.Sum(list), err
}

func matches(r journal.Record, q journal.Query) bool {
	return r.Pool == q.Pool && (q.Run == "" || r.ID == q.Run) && (q.Key == "" || r.Key == q.Key) &&
		(q.Kind == "" || r.Kind == q.Kind) && (!q.Open || r.Ended.IsZero()) && (!q.Latest || !r.Ended.IsZero()) &&
		!r.Started.Before(q.Since) && (len(q.Keys) == 0 || slices.Contains(q.Keys, r.Key))
}

// latest keeps the last record of each key and kind.
func latest(sorted []journal.Record) []journal.Record {
	type issue struct {
		key  string
		kind journal.Kind
	}
	last := map[issue]string{}
	for _, r := range sorted {
		last[issue{r.Key, r.Kind}] = r.ID
	}
	return slices.DeleteFunc(sorted, func(r journal.Record) bool { return last[issue{r.Key, r.Kind}] != r.ID })
}
