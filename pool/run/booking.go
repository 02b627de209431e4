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
	bookings    = 8                // about how often a run books until its budget is spent
	bookingWait = 10 * time.Second // for the remote; the claim's next renewal tells it otherwise
)

// books are what the claim says of what the run uses.
type books struct {
	booking *gateway.Booking // nil: nothing is said in advance
	writing sync.Mutex       // held while the claim is written
}

// book has what the agents are going to use written on the claim before they use it, where the issue has a budget. When this
// run dies, that counts: other machines cannot read its journal, and here nobody knows what was on its way.
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

// claimSpend says on the claim what the run has used, or may use.
func (x *execution) claimSpend(ctx context.Context, used agents.Usage) error {
	x.books.writing.Lock()
	defer x.books.writing.Unlock()
	rec := journal.Record{Run: x.run}
	rec.Facts.Usage = used
	return x.claim.SetRecord(ctx, tally.Spending(x.claim.Record(), rec.Tally()))
}
