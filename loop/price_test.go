package loop

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Tokens that an agent reports without their cost get a cost, and end a run whose budget they use up.
func TestPrice(t *testing.T) {
	t.Parallel()
	ten := func(usd float64) agents.Usage { return agents.Usage{Input: 10, CostUSD: usd} }
	for name, c := range map[string]struct {
		model   string // configured model
		says    string
		metered agents.Usage
		passed  MeteredRequests
		end     End
		each    agents.Usage
		runs    int
	}{
		"its model has a price":     {"m", "use 10", agents.Usage{}, MeteredRequests{}, EndBudget, ten(1.5), 2},
		"it names its model":        {"alias", "use 10\nmodel m", agents.Usage{}, MeteredRequests{}, EndBudget, ten(1.5), 2},
		"it states the cost":        {"m", "use 10\ncost 3", agents.Usage{}, MeteredRequests{}, EndBudget, ten(3), 1},
		"it states nothing":         {"m", "say", agents.Usage{}, MeteredRequests{}, EndMaxIterations, agents.Usage{}, 4},
		"no price":                  {"", "use 10", agents.Usage{}, MeteredRequests{}, EndMaxIterations, agents.Usage{Input: 10, Unpriced: 10}, 4},
		"its service has said more": {"m", "use 10", agents.Usage{Input: 4, CostUSD: 1}, MeteredRequests{Answered: true}, EndBudget, ten(1), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeMeter()
			cfg := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				m.count(c.metered)
				m.passed = c.passed
				_, _ = cmd.Stdout.Write([]byte("say\n" + c.says + "\n"))
				return sandboxes.Exit{}, nil
			}}, &recorder{})
			cfg.Options.Model, cfg.Meter, cfg.Budget, cfg.MaxIterations, cfg.NoProgress = c.model, m, Budget{CostUSD: 3}, 4, -1
			cfg.Price = func(_ agents.Agent, model string, u agents.Usage) agents.Usage {
				if model == "m" {
					u.CostUSD = 0.15 * float64(u.Input)
				} else {
					u.Unpriced = u.Tokens()
				}
				return u
			}
			cfg.Import = importCommits(0)
			r := Run(t.Context(), cfg)
			wantEnd(t, r, c.end)
			for _, it := range r.Iterations {
				if it.Usage != c.each {
					t.Errorf("iteration %d has used %+v, want %+v", it.Number, it.Usage, c.each)
				}
			}
			if len(r.Iterations) != c.runs {
				t.Errorf("%d iterations, want %d", len(r.Iterations), c.runs)
			}
		})
	}
}
