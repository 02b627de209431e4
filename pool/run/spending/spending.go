// Package spending counts what a run uses, and makes it known where its death cannot lose it. Package pool/run calls it.
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
	"github.com/ralph-pool/ralph/pool/run/hold"
	"github.com/ralph-pool/ralph/worktree"
)

const (
	bookings = 8                // about how many times a run books before its budget is spent
	wait     = 10 * time.Second // for the remote; otherwise the claim's next renewal writes it
)

// Account is what one run may use and has used. Its unexported fields belong to the run's goroutine.
type Account struct {
	Run   journal.Run
	Claim *hold.Claim
	Issue loop.Budget // of all attempts at the issue
	Own   loop.Budget // of the run
	Log   *slog.Logger

	counted agents.Usage     // the part of the meter's count that the facts include
	booking *gateway.Booking // nil: nothing is booked in advance
}

// Earlier is what earlier attempts have spent of the issue's budget. A person who merges has all of it.
func (a *Account) Earlier() agents.Usage {
	if a.Run.Kind != journal.KindIssue || a.Run.Settings.Attended {
		return agents.Usage{}
	}
	return a.Run.Earlier.Next().Spent
}

// Left is what the run may use: the rest of the issue's budget, within the run's own and its grant.
func (a *Account) Left() loop.Budget {
	return a.Issue.After(a.Earlier()).Min(a.Own).Min(a.Run.Granted)
}

// Book makes the agents' spending stand on the claim before they spend it, if the issue has a budget. If this run dies, the booked
// amount counts: other machines cannot read its journal, and requests in flight are not in it. used is what the facts have.
func (a *Account) Book(meter *gateway.Meter, used agents.Usage) {
	if a.booking != nil || a.Issue == (loop.Budget{}) || a.Run.Kind != journal.KindIssue || !a.Claim.Held() {
		return
	}
	step := agents.Usage{Input: (a.Issue.Tokens + bookings - 1) / bookings, CostUSD: a.Issue.CostUSD / bookings}
	a.booking = gateway.NewBooking(used.Less(a.counted), step, func(ctx context.Context, sum agents.Usage) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
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
	return a.counted.Less(before)
}

// Includes says that the facts have this part of the meter's count.
func (a *Account) Includes(part agents.Usage) { a.counted = a.counted.Add(part) }

// Record writes what the run has used to its claim, for other machines.
func (a *Account) Record(ctx context.Context, used agents.Usage) {
	if a.Run.Kind != journal.KindIssue || !a.Claim.Held() || used == (agents.Usage{}) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := a.Claim.Spend(limited, a.Run, a.booking.AtLeast(used)); err != nil && ctx.Err() == nil { // at the end, release records it
		a.Log.Warn("spend not recorded on the claim", "error", err)
	}
}
