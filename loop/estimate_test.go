package loop

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/sandboxes"
)

// noUsageAgent is an agent whose output never states its usage.
type noUsageAgent struct{ scriptedAgent }

func (w noUsageAgent) Describe() agents.Description {
	d := w.scriptedAgent.Describe()
	d.NoUsage = true
	return d
}

// If nobody reports the usage of an iteration, the estimate counts, and ends a run when its budget is used up.
func TestEstimate(t *testing.T) {
	t.Parallel()
	tokens := agents.Usage{Input: 100, Estimated: 100, Unpriced: 100}
	for name, c := range map[string]struct {
		agent    agents.Agent
		budget   Budget
		estimate Budget
		says     string
		exit     int
		metered  agents.Usage
		end      End
		each     agents.Usage
		runs     int
	}{
		"tokens":                 {noUsageAgent{}, Budget{Tokens: 200}, Budget{Tokens: 100}, "say still at it", 0, agents.Usage{}, EndBudget, tokens, 2},
		"cost":                   {noUsageAgent{}, Budget{CostUSD: 3}, Budget{Tokens: 100, CostUSD: 1.5}, "say", 0, agents.Usage{}, EndBudget, agents.Usage{Input: 100, Estimated: 100, CostUSD: 1.5}, 2},
		"it fails":               {noUsageAgent{}, Budget{Tokens: 100}, Budget{Tokens: 100}, "", 1, agents.Usage{}, EndBudget, tokens, 1},
		"it fails twice":         {noUsageAgent{}, Budget{Tokens: 900}, Budget{Tokens: 100}, "", 1, agents.Usage{}, EndAgent, tokens, 2},
		"the endpoint says it":   {noUsageAgent{}, Budget{Tokens: 10}, Budget{Tokens: 100}, "say", 0, agents.Usage{Input: 5}, EndBudget, agents.Usage{Input: 5}, 2},
		"the agent says it":      {scriptedAgent{}, Budget{Tokens: 20}, Budget{Tokens: 100}, "use 10", 0, agents.Usage{}, EndBudget, agents.Usage{Input: 10}, 2},
		"it could say it":        {scriptedAgent{}, Budget{Tokens: 200}, Budget{Tokens: 100}, "say", 0, agents.Usage{}, EndBudget, tokens, 2},
		"it never began":         {scriptedAgent{}, Budget{Tokens: 100}, Budget{Tokens: 100}, "fail " + string(agents.BadRequest), 1, agents.Usage{}, EndAgent, agents.Usage{}, 1},
		"its service is away":    {noUsageAgent{}, Budget{Tokens: 100}, Budget{Tokens: 100}, "fail " + string(agents.Overload), 1, agents.Usage{}, EndUnavailable, agents.Usage{}, 1},
		"no estimate, no budget": {noUsageAgent{}, Budget{}, Budget{}, "say", 0, agents.Usage{}, EndMaxIterations, agents.Usage{}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeMeter()
			d := &recorder{}
			cfg := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				m.count(c.metered)
				_, _ = cmd.Stdout.Write([]byte(c.says + "\n"))
				return sandboxes.Exit{Code: c.exit}, nil
			}}, d)
			cfg.Agent, cfg.Meter, cfg.Budget, cfg.Estimate, cfg.MaxIterations = c.agent, m, c.budget, func(agents.Agent) Budget { return c.estimate }, 4
			cfg.Import = importCommits(0)
			cfg.NoProgress = -1
			r := Run(t.Context(), cfg)
			wantEnd(t, r, c.end)
			var all agents.Usage
			for _, it := range r.Iterations {
				if all = all.Add(it.Usage); it.Usage != c.each {
					t.Errorf("iteration %d has used %+v, want %+v", it.Number, it.Usage, c.each)
				}
			}
			if len(r.Iterations) != c.runs || r.Usage != all {
				t.Errorf("%d iterations have used %+v", len(r.Iterations), r.Usage)
			}
		})
	}
}

// The estimate is reported before the agent starts, so that a crash cannot lose it; the agent's own report then replaces it.
func TestEstimateBeforeTheAgent(t *testing.T) {
	t.Parallel()
	estimate := agents.Usage{Input: 100, Estimated: 100, Unpriced: 100}
	for _, of := range []struct {
		agent agents.Agent
		says  string
		want  agents.Usage
	}{{noUsageAgent{}, sayDone, estimate}, {scriptedAgent{}, "use 10\n" + sayDone, agents.Usage{Input: 10}}} {
		d := &recorder{}
		var before []Event
		c := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			before = d.eventsOf(EventSpent)
			_, _ = cmd.Stdout.Write([]byte(of.says + "\n"))
			return sandboxes.Exit{}, nil
		}}, d)
		c.Agent, c.Estimate = of.agent, func(agents.Agent) Budget { return Budget{Tokens: 100} }
		r := Run(t.Context(), c)
		wantEnd(t, r, EndDone)
		if len(before) != 1 || before[0].Used != estimate || r.Usage != of.want {
			t.Errorf("before the agent %+v, at the end %+v, want %+v", before, r.Usage, of.want)
		}
	}
}
