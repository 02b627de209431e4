package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/tally"
	"github.com/ralph-pool/ralph/worktree"
)

const (
	bookings    = 8                // about how many times a run books before its budget is spent
	bookingWait = 10 * time.Second // for the remote; otherwise the claim's next renewal writes it
)

// books keep the run's spending on its claim.
type books struct {
	booking *gateway.Booking // nil: nothing is booked in advance
	writing sync.Mutex       // held while the claim is written
}

// book makes the agents' spending stand on the claim before they spend it, if the issue has a budget. If this run dies, the booked
// amount counts: other machines cannot read its journal, and requests in flight are not in it.
func (x *execution) book(s *journal.State) {
	limit := x.c.Budget
	if x.books.booking == nil && limit != (loop.Budget{}) && x.run.Kind == journal.KindIssue && x.owned() {
		step := agents.Usage{Input: (limit.Tokens + bookings - 1) / bookings, CostUSD: limit.CostUSD / bookings}
		x.books.booking = gateway.NewBooking(s.Facts.Usage.Less(x.counted), step, func(ctx context.Context, sum agents.Usage) error {
			ctx, cancel := context.WithTimeout(ctx, bookingWait)
			defer cancel()
			err := x.claimSpend(ctx, sum)
			if err != nil && !errors.Is(err, worktree.ErrLost) {
				x.log.Warn("spend not recorded on the claim in advance", "error", err)
				return nil
			}
			return err
		})
		x.space.Meter.Book(x.books.booking)
	}
}

// claimSpend writes on the claim what the run has used or may use.
func (x *execution) claimSpend(ctx context.Context, used agents.Usage) error {
	x.books.writing.Lock()
	defer x.books.writing.Unlock()
	rec := journal.Record{Run: x.run}
	rec.Facts.Usage = used
	return x.claim.SetRecord(ctx, tally.Spending(x.claim.Record(), rec.Tally()))
}
