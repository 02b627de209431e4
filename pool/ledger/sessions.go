package ledger

import (
	"fmt"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Sessions compares iterations that went on in their agent's session with those that began afresh. A run's first iteration
// is neither: it has all the work before it. What iterations used of which nobody knows is left out.
type Sessions struct {
	Resumed Sum `json:"resumed"`
	Fresh   Sum `json:"fresh"`
}

// Sum is what some iterations have used.
type Sum struct {
	Iterations int          `json:"iterations"`
	Usage      agents.Usage `json:"usage"`
}

// Compare compares the iterations of one run.
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

// Add is the comparison of what both compare.
func (s Sessions) Add(t Sessions) Sessions {
	return Sessions{s.Resumed.add(t.Resumed), s.Fresh.add(t.Fresh)}
}

func (s Sum) add(t Sum) Sum { return Sum{s.Iterations + t.Iterations, s.Usage.Add(t.Usage)} }

// String is the comparison in one line; empty where nothing was resumed.
func (s Sessions) String() string {
	if s.Resumed.Iterations == 0 {
		return ""
	}
	text := fmt.Sprintf("%d resumed, each %s", s.Resumed.Iterations, s.Resumed.each())
	if s.Fresh.Iterations == 0 {
		return text + "; none after the first began afresh, to compare with"
	}
	return fmt.Sprintf("%s; %d begun afresh after the first, each %s", text, s.Fresh.Iterations, s.Fresh.each())
}

// each is what one of the iterations has used on average.
func (s Sum) each() string {
	n := int64(s.Iterations)
	text := fmt.Sprintf("%d tokens and %d from the cache", s.Usage.Tokens()/n, s.Usage.CacheRead/n)
	if s.Usage.CostUSD > 0 {
		text += fmt.Sprintf(", $%.4f", s.Usage.CostUSD/float64(n))
	}
	return text
}
