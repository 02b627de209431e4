package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/ledger"
)

func TestLeft(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 31, 23, 30, 0, 0, time.FixedZone("west", -3600)) // already the next year in UTC
	tokens := func(n int64) agents.Usage { return agents.Usage{Output: n} }
	cost := func(usd float64) agents.Usage { return agents.Usage{CostUSD: usd} }
	for name, tt := range map[string]struct {
		caps     ledger.Caps
		spent    ledger.Spending
		reserved agents.Usage
		left     loop.Budget
		err      string
	}{
		"no cap":            {spent: ledger.Spending{Day: tokens(5), Month: cost(9)}},
		"nothing spent yet": {caps: ledger.Caps{Day: loop.Budget{Tokens: 10}}, left: loop.Budget{Tokens: 10}},
		"the smaller of day and month, in each unit": {
			caps:  ledger.Caps{Day: loop.Budget{Tokens: 10, CostUSD: 1}, Month: loop.Budget{Tokens: 100, CostUSD: 1.5}},
			spent: ledger.Spending{Day: agents.Usage{Input: 1, CostUSD: 0.25}, Month: agents.Usage{Input: 98, CostUSD: 0.5}},
			left:  loop.Budget{Tokens: 2, CostUSD: 0.75},
		},
		"what is reserved is not left": {
			caps: ledger.Caps{Day: loop.Budget{Tokens: 10}}, spent: ledger.Spending{Day: tokens(3)}, reserved: tokens(4), left: loop.Budget{Tokens: 3},
		},
		"spent by tokens": {
			caps: ledger.Caps{Day: loop.Budget{Tokens: 10, CostUSD: 5}}, spent: ledger.Spending{Day: tokens(11)},
			err: "this day's cap for all runs is spent: 11 of 10 tokens; the next day begins at 2027-01-02 00:00 UTC",
		},
		"spent by cost": {
			caps: ledger.Caps{Day: loop.Budget{Tokens: 10, CostUSD: 5}}, spent: ledger.Spending{Day: cost(5)},
			err: "this day's cap for all runs is spent: $5.00 of $5.00; the next day begins at 2027-01-02 00:00 UTC",
		},
		"the month waits longer": {
			caps: ledger.Caps{Day: loop.Budget{Tokens: 10}, Month: loop.Budget{Tokens: 20}}, spent: ledger.Spending{Day: tokens(10), Month: tokens(20)},
			err: "this month's cap for all runs is spent: 20 of 20 tokens; the next month begins at 2027-02-01 00:00 UTC",
		},
		"reserved": {
			caps: ledger.Caps{Day: loop.Budget{CostUSD: 5}}, spent: ledger.Spending{Day: cost(1)}, reserved: cost(4),
			err: "this day's cap for all runs is spent: $1.00 of $5.00, and the rest is reserved for active runs; the next day begins at 2027-01-02 00:00 UTC",
		},
	} {
		left, err := tt.caps.Remaining(tt.spent, tt.reserved, now)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if left != tt.left || text != tt.err {
			t.Errorf("%s: %+v, %s; want %+v, %s", name, left, text, tt.left, tt.err)
		}
		if _, spent := errors.AsType[*ledger.SpentError](err); spent != (tt.err != "") {
			t.Errorf("%s: %T", name, err)
		}
	}
}

func TestGrant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left, own, granted loop.Budget
		reserved           agents.Usage
	}{
		{loop.Budget{Tokens: 10}, loop.Budget{}, loop.Budget{Tokens: 10}, agents.Usage{}},
		{loop.Budget{Tokens: 10}, loop.Budget{Tokens: 4}, loop.Budget{Tokens: 4}, agents.Usage{Input: 4}},
		{loop.Budget{Tokens: 3, CostUSD: 2}, loop.Budget{Tokens: 4}, loop.Budget{Tokens: 3, CostUSD: 2}, agents.Usage{Input: 3}},
		{loop.Budget{Tokens: 3}, loop.Budget{CostUSD: 4}, loop.Budget{Tokens: 3, CostUSD: 4}, agents.Usage{CostUSD: 4}},
	} {
		granted, reserved := ledger.Grant(tt.left, tt.own)
		if granted != tt.granted || reserved != tt.reserved {
			t.Errorf("of %+v for %+v: %+v, %+v", tt.left, tt.own, granted, reserved)
		}
	}
	got := ledger.Unspent(agents.Usage{Input: 10, CostUSD: 2}, agents.Usage{Input: 1, Output: 2, CacheWrite: 3, CacheRead: 99, CostUSD: 3})
	if want := (agents.Usage{Input: 4}); got != want {
		t.Errorf("unspent %+v, want %+v", got, want)
	}
}
