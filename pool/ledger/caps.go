package ledger

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Caps limits what all runs of a project may use together per day and per month, in UTC. The zero Budget means no cap.
type Caps struct {
	Day, Month loop.Budget
}

// IsZero reports whether there is no cap.
func (c Caps) IsZero() bool { return c == Caps{} }

// Spending is the usage since the beginning of the present day and of the present month.
type Spending struct {
	Day, Month agents.Usage
}

// DefaultEstimate is the usage that counts for an iteration without a report. It is high rather than low.
func DefaultEstimate() loop.Budget { return loop.Budget{Tokens: 200_000, CostUSD: 2} }

// DayOf returns the beginning of the UTC day of t.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// MonthOf returns the beginning of the UTC month of t.
func MonthOf(t time.Time) time.Time {
	year, month, _ := t.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

// SpentError means that a cap is used up.
type SpentError struct {
	Period   string // "day" or "month"
	Cap      loop.Budget
	Spent    agents.Usage
	Reserved bool      // the rest is reserved for runs in progress
	Until    time.Time // beginning of the next day or month
}

func (e *SpentError) Error() string {
	spent := fmt.Sprintf("%s of %s", Spend{Usage: e.Spent}.Amount(), USD(e.Cap.CostUSD))
	if tokens := (loop.Budget{Tokens: e.Cap.Tokens}); e.Cap.CostUSD == 0 || tokens.Exhausted(e.Spent) {
		spent = fmt.Sprintf("%d of %d tokens", e.Spent.Tokens(), e.Cap.Tokens)
	}
	if e.Reserved {
		spent += ", and the rest is reserved for active runs"
	}
	return fmt.Sprintf("this %s's cap for all runs is spent: %s; the next %s begins at %s UTC",
		e.Period, spent, e.Period, e.Until.UTC().Format("2006-01-02 15:04"))
}

// Remaining returns what the caps leave for another run after the reservations of runs in progress; zero means no cap. It fails
// with a *SpentError if nothing is left.
func (c Caps) Remaining(spent Spending, reserved agents.Usage, now time.Time) (left loop.Budget, err error) {
	for _, of := range []SpentError{ // longest wait first
		{Period: "month", Cap: c.Month, Spent: spent.Month, Until: MonthOf(now).AddDate(0, 1, 0)},
		{Period: "day", Cap: c.Day, Spent: spent.Day, Until: DayOf(now).AddDate(0, 0, 1)},
	} {
		gone := of.Spent.Add(reserved)
		if of.Cap.Exhausted(gone) {
			of.Reserved = !of.Cap.Exhausted(of.Spent)
			return loop.Budget{}, &of
		}
		left = left.Min(of.Cap.Remaining(gone))
	}
	return left, nil
}

// Grant returns what a run may use of left, given its own budget, and the part that is reserved for it. A run without a
// budget of its own reserves nothing.
func Grant(left, own loop.Budget) (granted loop.Budget, reserved agents.Usage) {
	granted = left.Min(own)
	if own.Tokens > 0 {
		reserved.Input = granted.Tokens
	}
	if own.CostUSD > 0 {
		reserved.CostUSD = granted.CostUSD
	}
	return granted, reserved
}

// Unspent returns the rest of a reservation after its run has used a part.
func Unspent(reserved, used agents.Usage) agents.Usage {
	return reserved.Minus(agents.Usage{Input: used.Tokens(), CostUSD: used.CostUSD})
}
