package fleet

import (
	"context"
	"sync/atomic"
	"time"
)

// clock is the database's time as this machine knows it. Leases, rows and claims go by it, so that machines whose clocks differ
// agree on what has expired. It is safe for concurrent use.
type clock struct {
	ahead atomic.Int64 // how far this machine's clock is ahead, in nanoseconds
}

// Now is part of rivertype.TimeGenerator.
func (c *clock) Now() time.Time { return time.Now().Add(-time.Duration(c.ahead.Load())) }

// NowOrNil is part of rivertype.TimeGenerator: where the database can have its own time, it does.
func (c *clock) NowOrNil() *time.Time { return nil }

// set compares the machine's clock with the database's, and returns by how much it is ahead. A difference that may come from the
// time of the call itself changes nothing.
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
