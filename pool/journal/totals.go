package journal

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// Totals is implemented by stores that add up runs without reading their whole records.
type Totals interface {
	// Totals adds up the runs of the pool that began since then, in no order.
	Totals(ctx context.Context, pool string, since time.Time) ([]Total, error)
}

// TotalsOf adds up the runs of a store's pool that began since then, in no order.
func TotalsOf(ctx context.Context, s Store, pool string, since time.Time) ([]Total, error) {
	if adds, ok := s.(Totals); ok {
		return adds.Totals(ctx, pool, since)
	}
	list, err := s.Find(ctx, Query{Pool: pool, Since: since})
	return Sum(list), err
}

// Total is the sum of the runs that have a day, an agent, a model and an outcome in common. A merge by a person and a command
// are no runs of agents: they add to Usage alone.
type Total struct {
	Day     int64   // on which they began; see Day
	Agent   string  // the one they began with
	Model   string  // empty: the agent's own
	Outcome Outcome // empty: not ended, whatever the verdict is so far
	Runs    int
	Seconds float64 // from beginning to end, of those that have ended
	Usage   agents.Usage
	Unknown int // of the runs, those whose cost is not known, or not all of it
}

// Costless reports that the cost of what agents have used is not known, or not all of it: of models without a price, or of agents
// that say nothing. A model whose price is 0 has a cost.
func Costless(u agents.Usage) bool { return u.Unpriced > 0 || u.CostUSD == 0 && u.Tokens() == 0 }

// Sum adds up records.
func Sum(records []Record) []Total {
	type kind struct {
		day          int64
		agent, model string
		outcome      Outcome
	}
	sums := map[kind]*Total{}
	for _, r := range records {
		works := !r.Settings.Attended && r.Kind != KindCommand
		if !works && r.Facts.Usage == (agents.Usage{}) {
			continue
		}
		k := kind{day: Day(r.Started), agent: r.Agent, model: r.Model}
		if !r.Ended.IsZero() {
			k.outcome = r.Verdict.Outcome
		}
		t := sums[k]
		if t == nil {
			t = &Total{Day: k.day, Agent: k.agent, Model: k.model, Outcome: k.outcome}
			sums[k] = t
		}
		t.Usage = t.Usage.Add(r.Facts.Usage)
		if !works {
			continue
		}
		t.Runs++
		if u := r.Facts.Usage; u.Unpriced > 0 || len(r.Facts.Iterations) > 0 && Costless(u) && !r.Facts.Free {
			t.Unknown++
		}
		if !r.Ended.IsZero() {
			t.Seconds += r.Took(r.Ended).Seconds()
		}
	}
	out := make([]Total, 0, len(sums))
	for _, t := range sums {
		out = append(out, *t)
	}
	return out
}
