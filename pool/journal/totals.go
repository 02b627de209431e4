package journal

import (
	"context"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// Totals is implemented by stores that sum up runs without decoding whole records.
type Totals interface {
	// Totals sums up the runs of the pool that began at since or later, in no particular order.
	Totals(ctx context.Context, pool string, since time.Time) ([]Total, error)
}

// TotalsOf sums up the runs of a store's pool that began at since or later, in no particular order.
func TotalsOf(ctx context.Context, s Store, pool string, since time.Time) ([]Total, error) {
	if adds, ok := s.(Totals); ok {
		return adds.Totals(ctx, pool, since)
	}
	list, err := s.Find(ctx, Query{Pool: pool, Since: since})
	return Sum(list), err
}

// Total is the sum of the runs with the same day, agent, model and outcome. Merges by a person and commands do not count as
// runs: they only add to Usage.
type Total struct {
	Day     int64   // day of the start; see Day
	Agent   string  // the first agent
	Model   string  // empty: the agent's default
	Outcome Outcome // empty: not ended, whatever the present verdict is
	Runs    int
	Seconds float64 // duration of the ended runs
	Usage   agents.Usage
	Unknown int // number of runs whose cost is not completely known
}

// Costless reports whether the cost of the usage is not completely known, because a model has no price or an agent reports
// nothing. A model with price 0 has a cost.
func Costless(u agents.Usage) bool { return u.Unpriced > 0 || u.CostUSD == 0 && u.Tokens() == 0 }

// AgentWorked reports that an agent was started, or may have been: a crash loses the current iteration.
func (r Record) AgentWorked() bool {
	f := r.Facts
	if r.Agent == "" || r.Settings.Attended || r.Kind == KindCommand {
		return false
	}
	return f.Usage != (agents.Usage{}) || len(f.Iterations) > 0 || f.End == "" && len(History{r}.Begun()) > 0
}

// CostUnknown reports whether the cost of the run is not completely known. Stores with Totals count by the same rule.
func (r Record) CostUnknown() bool {
	return r.AgentWorked() && Costless(r.Facts.Usage) && !r.Facts.UsedNothing
}

// Sum sums up records.
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
		if r.CostUnknown() {
			t.Unknown++
		}
		if !r.Ended.IsZero() {
			t.Seconds += r.DurationUntil(r.Ended).Seconds()
		}
	}
	out := make([]Total, 0, len(sums))
	for _, t := range sums {
		out = append(out, *t)
	}
	return out
}
