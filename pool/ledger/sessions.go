package ledger

import (
	"fmt"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Sessions compares iterations that continued their agent's session with those that began a new one. It leaves out a run's
// first iteration, which has all the work before it, and iterations with unknown usage.
type Sessions struct {
	Resumed Sum `json:"resumed"`
	Fresh   Sum `json:"fresh"`
}

// Sum is the total usage of some iterations.
type Sum struct {
	Iterations int          `json:"iterations"`
	Usage      agents.Usage `json:"usage"`
}

// Compare sums up the iterations of one run.
func Compare(list []loop.Iteration) (s Sessions) {
	for _, it := range list {
		switch {
		case it.Number == 1 || it.Usage == (agents.Usage{}):
		case it.Resumed:
			s.Resumed = s.Resumed.add(Sum{1, it.Usage})
		default:
			s.Fresh = s.Fresh.add(Sum{1, it.Usage})
		}
	}
	return s
}

// Add returns the sum of two comparisons.
func (s Sessions) Add(t Sessions) Sessions {
	return Sessions{s.Resumed.add(t.Resumed), s.Fresh.add(t.Fresh)}
}

func (s Sum) add(t Sum) Sum { return Sum{s.Iterations + t.Iterations, s.Usage.Add(t.Usage)} }

// String returns the comparison in one line; "" if no iteration continued a session.
func (s Sessions) String() string {
	if s.Resumed.Iterations == 0 {
		return ""
	}
	text := fmt.Sprintf("%d resumed, each %s", s.Resumed.Iterations, s.Resumed.each())
	if s.Fresh.Iterations == 0 {
		return text + "; no later one began a new session, so there is no comparison"
	}
	return fmt.Sprintf("%s; %d in new sessions after the first, each %s", text, s.Fresh.Iterations, s.Fresh.each())
}

// each describes the average usage of an iteration.
func (s Sum) each() string {
	n := int64(s.Iterations)
	text := fmt.Sprintf("%d tokens and %d from the cache", s.Usage.Tokens()/n, s.Usage.CacheRead/n)
	if s.Usage.CostUSD > 0 {
		text += fmt.Sprintf(", $%.4f", s.Usage.CostUSD/float64(n))
	}
	return text
}
