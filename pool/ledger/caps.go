package ledger

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Caps are what all runs of a project may spend together in one day and in one month, in UTC. The zero Budget is no cap.
type Caps struct {
	Day, Month loop.Budget
}

// IsZero reports that there is no cap.
func (c Caps) IsZero() bool { return c == Caps{} }

// Spending is what has been used since the present day and the present month began.
type Spending struct {
	Day, Month agents.Usage
}

// DefaultEstimate counts for an iteration whose usage nobody reports. It is rather too much than too little.
func DefaultEstimate() loop.Budget { return loop.Budget{Tokens: 200_000, CostUSD: 2} }

// DayOf is when the day began that a time is in.
func DayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// MonthOf is when the month began that a time is in.
func MonthOf(t time.Time) time.Time {
	year, month, _ := t.UTC().Date()
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

// SpentError says that a cap has nothing left.
type SpentError struct {
	Period   string // "day" or "month"
	Cap      loop.Budget
	Spent    agents.Usage
	Reserved bool      // what is not spent is reserved for runs that are on
	Until    time.Time // when the next day or month begins
}

func (e *SpentError) Error() string {
	spent := fmt.Sprintf("%s of %s", Spend{Usage: e.Spent}.Amount(), USD(e.Cap.CostUSD))
	if tokens := (loop.Budget{Tokens: e.Cap.Tokens}); e.Cap.CostUSD == 0 || tokens.Spent(e.Spent) {
		spent = fmt.Sprintf("%d of %d tokens", e.Spent.Tokens(), e.Cap.Tokens)
	}
	if e.Reserved {
		spent += ", and the rest is reserved for runs that are on"
	}
	return fmt.Sprintf("this %s's cap for all runs is spent: %s; the next %s begins at %s UTC",
		e.Period, spent, e.Period, e.Until.UTC().Format("2006-01-02 15:04"))
}

// Left is what the caps leave for another run, next to what runs that are on have reserved. Where it is zero nothing is
// capped. The error is a *SpentError: nothing is left.
func (c Caps) Left(spent Spending, reserved agents.Usage, now time.Time) (left loop.Budget, err error) {
	for _, of := range []SpentError{ // the longest wait first
		{Period: "month", Cap: c.Month, Spent: spent.Month, Until: MonthOf(now).AddDate(0, 1, 0)},
		{Period: "day", Cap: c.Day, Spent: spent.Day, Until: DayOf(now).AddDate(0, 0, 1)},
	} {
		gone := of.Spent.Add(reserved)
		if of.Cap.Spent(gone) {
			of.Reserved = !of.Cap.Spent(of.Spent)
			return loop.Budget{}, &of
		}
		left = left.Min(of.Cap.After(gone))
	}
	return left, nil
}

// Grant is what a run may spend of what is left, given its own budget, and what of that is reserved for it: a run without
// a budget of its own reserves nothing.
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

// Unspent is what is left of a reservation when its run has used some of it.
func Unspent(reserved, used agents.Usage) agents.Usage {
	return reserved.Less(agents.Usage{Input: used.Tokens(), CostUSD: used.CostUSD})
}
