package ledger

import (
	"fmt"
	"strconv"

	"github.com/ralph-pool/ralph/agents"
)

// Spend is the usage of one or several runs, formatted for people: every table, sum and sentence about usage comes from
// here.
type Spend struct {
	agents.Usage
	Unknown int // number of runs whose cost is not completely known
}

// String returns the known cost, with ">" if a part is unknown and "~" if a part is an estimate; without a known cost the
// tokens; without usage "".
func (s Spend) String() string {
	switch {
	case s.CostUSD > 0:
		return s.Amount()
	case s.Tokens() > 0:
		return s.about() + Count(s.Tokens()) + " tok"
	}
	return ""
}

// Amount returns the known cost, which may be zero, with the same marks as String.
func (s Spend) Amount() string {
	switch {
	case s.Unpriced > 0 || s.Unknown > 0:
		return fmt.Sprintf(">%s$%.2f", s.about(), s.CostUSD)
	case s.CostUSD == 0:
		return "$0.00"
	}
	return s.about() + USD(s.CostUSD)
}

func (s Spend) about() string {
	if s.Estimated > 0 {
		return "~"
	}
	return ""
}

// Text describes the known usage in one line.
func (s Spend) Text() string {
	if s.Usage == (agents.Usage{}) {
		return "not reported"
	}
	known := "cost unknown"
	if s.CostUSD > 0 {
		known = s.String()
	}
	if s.CostUSD > 0 && s.Unpriced > 0 {
		known += fmt.Sprintf(" (the cost of %d tokens is unknown)", s.Unpriced)
	}
	text := fmt.Sprintf("%s; %d tokens in, %d from cache, %d out", known, s.Input+s.CacheWrite, s.CacheRead, s.Output)
	if s.Estimated > 0 {
		text += fmt.Sprintf("; %d of the tokens, or their cost, are an estimate", s.Estimated)
	}
	return text
}

// USD formats a known amount. An amount below a cent does not become zero.
func USD(amount float64) string {
	if amount < 0.005 {
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", amount)
}

// Count formats a number of tokens with two or three digits and a unit.
func Count(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	v, unit := float64(n), ""
	for _, unit = range []string{"k", "M", "G", "T"} {
		if v /= 1000; v < 999.5 {
			break
		}
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f%s", v, unit)
	}
	return fmt.Sprintf("%.0f%s", v, unit)
}
