package ledger_test

import (
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// An unknown cost is never shown as an amount, and an amount below a cent is not shown as zero.
func TestSpend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		used agents.Usage
		want string
	}{
		{agents.Usage{}, ""},
		{agents.Usage{CostUSD: 0.42, Input: 9}, "$0.42"},
		{agents.Usage{CostUSD: 0.0049}, "<$0.01"},
		{agents.Usage{CostUSD: 0.42, Input: 9, Unpriced: 4}, ">$0.42"},
		{agents.Usage{CostUSD: 0.42, Input: 9, Estimated: 4}, "~$0.42"},
		{agents.Usage{CostUSD: 0.42, Input: 9, Unpriced: 4, Estimated: 4}, ">~$0.42"},
		{agents.Usage{Input: 9, Unpriced: 9, Estimated: 4}, "~9 tok"},
		{agents.Usage{Input: 9, Unpriced: 9}, "9 tok"},
		{agents.Usage{CostUSD: 1234.5}, "$1234.50"},
		{agents.Usage{Input: 1, CacheWrite: 2, Output: 4, CacheRead: 8}, "7 tok"},
		{agents.Usage{Input: 999}, "999 tok"},
		{agents.Usage{Input: 1000}, "1.0k tok"},
		{agents.Usage{Input: 9949}, "9.9k tok"},
		{agents.Usage{Input: 9950}, "10k tok"},
		{agents.Usage{Output: 12345}, "12k tok"},
		{agents.Usage{Output: 999_499}, "999k tok"},
		{agents.Usage{Output: 999_500}, "1.0M tok"},
		{agents.Usage{Output: 2_000_000_000}, "2.0G tok"},
		{agents.Usage{Output: 3_000_000_000_000_000}, "3000T tok"},
	} {
		if got := (ledger.Spend{Usage: c.used}).String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.used, got, c.want)
		}
	}
}

// A sum is marked if the cost of some runs is unknown, even if their tokens do not show it.
func TestSpendOfRuns(t *testing.T) {
	t.Parallel()
	s := ledger.Spend{Usage: agents.Usage{Input: 9, CacheRead: 4, Output: 2, CostUSD: 0.001}, Unknown: 2}
	if got, want := s.Text(), ">$0.00; 9 tokens in, 4 from cache, 2 out"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.CostUSD, s.Unpriced, s.Estimated = 0, 9, 3
	if got, want := s.Text(), "cost unknown; 9 tokens in, 4 from cache, 2 out; 3 of the tokens, or their cost, are an estimate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := s.Amount(); got != ">~$0.00" {
		t.Errorf("%q", got)
	}
	if got := (ledger.Spend{Unknown: 1}).Text(); got != "not reported" {
		t.Errorf("%q", got)
	}
	if got := (ledger.Spend{}).Amount(); got != "$0.00" {
		t.Errorf("%q", got)
	}
}
