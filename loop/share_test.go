package loop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/sandboxes"
)

// After an agent has used up its own budget, the next one continues; after the last one the run ends.
func TestShares(t *testing.T) {
	t.Parallel()
	first, second := agents.Choice{Agent: "scripted", Model: "a"}, agents.Choice{Agent: "scripted", Model: "b"}
	tests := map[string]struct {
		shares  map[agents.Choice]Budget
		says    string // in every iteration of the first agent
		meter   bool   // it counts 100 tokens in each iteration, and the agent hangs
		want    End
		number  int // number of iterations
		ofAgent bool
	}{
		"after an iteration":        {map[agents.Choice]Budget{first: {Tokens: 150}}, "use 100", false, EndDone, 3, false},
		"in the middle of one":      {map[agents.Choice]Budget{first: {Tokens: 90}}, "tool x", true, EndDone, 2, false},
		"refused by the endpoint":   {map[agents.Choice]Budget{first: {Tokens: 90}}, "use 100\nfail bad-request", false, EndDone, 2, false},
		"work that is done":         {map[agents.Choice]Budget{first: {Tokens: 90}}, "use 100\n" + sayDone, false, EndDone, 1, false},
		"not spent":                 {map[agents.Choice]Budget{first: {Tokens: 5000}}, "use 100", false, EndMaxIterations, 4, false},
		"of another model":          {map[agents.Choice]Budget{second: {Tokens: 90}}, "use 100", false, EndMaxIterations, 4, false},
		"and there is nobody after": {map[agents.Choice]Budget{first: {Tokens: 90}, second: {Tokens: 1}}, "use 100", false, EndDone, 2, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, models := newFakeMeter(), []string{}
			c := fakeConfig(fakeSandbox{agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				if len(models) > 0 && models[len(models)-1] == "b" {
					return printLines(false, "use 5", sayDone)(ctx, cmd)
				}
				if !test.meter {
					return printLines(false, test.says)(ctx, cmd)
				}
				_, _ = cmd.Stdout.Write([]byte(test.says + "\n"))
				m.mu.Lock()
				limit := m.limit
				m.mu.Unlock()
				if limit.Tokens != 90 {
					t.Errorf("the service may answer until %+v is used", limit)
				}
				m.count(agents.Usage{Input: 100})
				<-ctx.Done()
				return sandboxes.Exit{}, context.Cause(ctx)
			}}, &recorder{})
			if test.meter {
				c.Meter = m
			}
			c.Options.Model, c.MaxIterations, c.Shares = "a", 4, test.shares
			c.Import = importCommits(1)
			c.Next = func(last Iteration) (agents.Link, bool) {
				if last.Failure != nil {
					t.Errorf("the agent is given out as unavailable: %v", last.Failure)
				}
				models = append(models, "b")
				return agents.Link{Agent: c.Agent, Options: agents.Options{Model: "b"}}, true
			}
			r := Run(t.Context(), c)
			wantEnd(t, r, test.want)
			if len(r.Iterations) != test.number || r.AgentBudgetExhausted != test.ofAgent {
				t.Errorf("%d iterations, of the agent %v: %+v", len(r.Iterations), r.AgentBudgetExhausted, r.Iterations)
			}
			if told := strings.Join(r.Warnings, ""); (len(models) > 0) != strings.Contains(told, "agent scripted:a has used up its own budget; scripted:b continues") {
				t.Errorf("warnings %q", told)
			}
			if len(models) > 0 && !slices.ContainsFunc(r.Iterations, func(it Iteration) bool { return it.Model == "b" }) {
				t.Errorf("no iteration of the other agent: %+v", r.Iterations)
			}
		})
	}
}

func TestLastAgentHasSpentItsShare(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: printLines(false, "use 100")}, &recorder{})
	c.Shares = map[agents.Choice]Budget{{Agent: "scripted"}: {Tokens: 150}}
	r := Run(t.Context(), c)
	if wantEnd(t, r, EndBudget); !r.AgentBudgetExhausted || len(r.Iterations) != 2 || r.Missing != MissingSignal {
		t.Errorf("of the agent %v after %d iterations, missing %q", r.AgentBudgetExhausted, len(r.Iterations), r.Missing)
	}
}
