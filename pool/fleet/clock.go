package fleet

import (
	"context"
	"sync/atomic"
	"time"
)

// clock is the database's time, as known to this machine. Leases, rows and claims expire by it, so that machines with
// different clocks agree. It is safe for concurrent use.
type clock struct {
	ahead atomic.Int64 // how far this machine's clock is ahead, in nanoseconds
}

// Now implements rivertype.TimeGenerator.
func (c *clock) Now() time.Time { return time.Now().Add(-time.Duration(c.ahead.Load())) }

// NowOrNil implements rivertype.TimeGenerator: nil makes River use the database's own time where it can.
func (c *clock) NowOrNil() *time.Time { return nil }

// set returns how far this machine's clock is ahead of the database's. It stores a change above the call's duration.
func (c *clock) set(ctx context.Context, d *Database) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	before := time.Now()
	var there time.Time
	if err := d.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
		return 0, d.hide(err)
	}
	took := time.Since(before)
	ahead := before.Add(took / 2).Sub(there)
	if (ahead - time.Duration(c.ahead.Load())).Abs() > took {
		c.ahead.Store(int64(ahead))
	}
	return ahead, nil
}
