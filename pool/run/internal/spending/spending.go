// Package spending counts the usage of a run and records it on the claim, where the death of the run cannot lose it. Package
// pool/run uses it.
package spending

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run/internal/hold"
	"github.com/ralph-pool/ralph/worktree"
)

const (
	bookings      = 8                // approximate number of bookings before the run's budget is spent
	recordTimeout = 10 * time.Second // for the remote; after that the claim's next renewal writes the record
)

// Account has the budgets of one run and counts its usage. Its unexported fields belong to the run's goroutine.
type Account struct {
	Run   journal.Run
	Claim *hold.Claim
	Issue loop.Budget // for all attempts at the issue
	Own   loop.Budget // for this run
	Log   *slog.Logger

	counted agents.Usage     // the part of the meter's count that the facts include
	booking *gateway.Booking // nil: nothing is booked in advance
}

// Earlier returns what earlier attempts have spent of the issue's budget. A merge by a person starts with the whole budget.
func (a *Account) Earlier() agents.Usage {
	if a.Run.Kind != journal.KindIssue || a.Run.Settings.Attended {
		return agents.Usage{}
	}
	return a.Run.Earlier.Next().Spent
}

// Remaining returns what the run may use: the rest of the issue's budget, within the run's own budget and its grant.
func (a *Account) Remaining() loop.Budget {
	return a.Issue.Remaining(a.Earlier()).Min(a.Own).Min(a.Run.Granted)
}

// Book records the agents' spending on the claim before they spend it, if the issue has a budget. If this run dies, the booked
// amount counts: other machines cannot read its journal, which lacks requests in flight anyway. used is the usage in the facts.
func (a *Account) Book(meter *gateway.Meter, used agents.Usage) {
	if a.booking != nil || a.Issue == (loop.Budget{}) || a.Run.Kind != journal.KindIssue || !a.Claim.Held() {
		return
	}
	step := agents.Usage{Input: (a.Issue.Tokens + bookings - 1) / bookings, CostUSD: a.Issue.CostUSD / bookings}
	a.booking = gateway.NewBooking(used.Minus(a.counted), step, func(ctx context.Context, sum agents.Usage) error {
		ctx, cancel := context.WithTimeout(ctx, recordTimeout)
		defer cancel()
		err := a.Claim.Spend(ctx, a.Run, sum)
		if err != nil && !errors.Is(err, worktree.ErrLost) {
			a.Log.Warn("spend not recorded on the claim in advance", "error", err)
			return nil
		}
		return err
	})
	meter.Book(a.booking)
}

// Count returns what the meter has counted since the last call.
func (a *Account) Count(meter *gateway.Meter) agents.Usage {
	before := a.counted
	a.counted = meter.Used()
	return a.counted.Minus(before)
}

// Includes notes that the facts already include this part of the meter's count.
func (a *Account) Includes(part agents.Usage) { a.counted = a.counted.Add(part) }

// Record writes the run's usage to its claim, for other machines.
func (a *Account) Record(ctx context.Context, used agents.Usage) {
	if a.Run.Kind != journal.KindIssue || !a.Claim.Held() || used == (agents.Usage{}) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	if err := a.Claim.Spend(limited, a.Run, a.booking.AtLeast(used)); err != nil && ctx.Err() == nil { // the end of the claim records it, too
		a.Log.Warn("spend not recorded on the claim", "error", err)
	}
}
