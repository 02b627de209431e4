package run

import (
	"context"
	"errors"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

const (
	bookings    = 8                // about how many times a run books before its budget is spent
	bookingWait = 10 * time.Second // for the remote; otherwise the claim's next renewal writes it
)

// book makes the agents' spending stand on the claim before they spend it, if the issue has a budget. If this run dies, the booked
// amount counts: other machines cannot read its journal, and requests in flight are not in it.
func (x *execution) book(s *journal.State) {
	limit := x.c.Budget
	if x.booking == nil && limit != (loop.Budget{}) && x.run.Kind == journal.KindIssue && x.claim.Held() {
		step := agents.Usage{Input: (limit.Tokens + bookings - 1) / bookings, CostUSD: limit.CostUSD / bookings}
		x.booking = gateway.NewBooking(s.Facts.Usage.Less(x.counted), step, func(ctx context.Context, sum agents.Usage) error {
			ctx, cancel := context.WithTimeout(ctx, bookingWait)
			defer cancel()
			err := x.claim.Spend(ctx, x.run, sum)
			if err != nil && !errors.Is(err, worktree.ErrLost) {
				x.log.Warn("spend not recorded on the claim in advance", "error", err)
				return nil
			}
			return err
		})
		x.space.Meter.Book(x.booking)
	}
}
