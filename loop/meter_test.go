package loop

import (
	"context"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/sandboxes"
)

// fakeMeter is a meter that the agent of a test advances.
type fakeMeter struct {
	changed chan struct{}

	mu           sync.Mutex
	limit        Budget
	used         agents.Usage
	full         error
	passed       MeteredRequests
	checkedUsage agents.Usage // last usage passed to SharedLimitError
}

func (c *fakeMeter) SharedLimitError(_ context.Context, used agents.Usage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkedUsage = used
	return c.full
}

func newFakeMeter() *fakeMeter { return &fakeMeter{changed: make(chan struct{}, 1)} }

func (c *fakeMeter) Requests(agents.Link) MeteredRequests {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passed
}

func (c *fakeMeter) Changed() <-chan struct{} { return c.changed }

func (c *fakeMeter) Limit(b Budget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit = b
}

func (c *fakeMeter) Used() agents.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

func (c *fakeMeter) count(u agents.Usage) {
	c.mu.Lock()
	c.used = c.used.Add(u)
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// A budget that is used up in the middle of an iteration ends the agent at once.
func TestMeterEndsTheIteration(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		budget Budget
		used   agents.Usage
		says   string
		want   End
	}{
		"tokens":                      {Budget{Tokens: 25}, agents.Usage{Input: 10, Output: 20}, "tool x", EndBudget},
		"cost":                        {Budget{CostUSD: 0.5}, agents.Usage{Output: 1, CostUSD: 0.5}, "tool x", EndBudget},
		"work that is done is judged": {Budget{Tokens: 25}, agents.Usage{Input: 30}, sayDone, EndDone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m := &recorder{}, newFakeMeter()
			c := fakeConfig(fakeSandbox{agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				_, _ = cmd.Stdout.Write([]byte(test.says + "\n"))
				m.count(test.used)
				<-ctx.Done()
				return sandboxes.Exit{}, context.Cause(ctx)
			}}, d)
			c.Meter, c.Budget = m, test.budget
			r := Run(t.Context(), c)
			wantEnd(t, r, test.want)
			if it := wantEnding(t, r, 1, EndingBudget); it.Usage != test.used || it.Failure != nil {
				t.Errorf("usage %+v, failure %v", it.Usage, it.Failure)
			}
			if r.Work.Commits != 1 || m.limit != test.budget {
				t.Errorf("%d commits are kept, the meter's limit is %+v", r.Work.Commits, m.limit)
			}
			if spent := d.eventsOf(EventSpent); len(spent) == 0 || spent[len(spent)-1].Used != test.used {
				t.Errorf("events %+v", spent)
			}
		})
	}
}

// If the agent and its service report different usage, the larger counts.
func TestLargerUsageCounts(t *testing.T) {
	t.Parallel()
	d, m := &recorder{}, newFakeMeter()
	n := 0
	c := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		n++
		m.count(agents.Usage{Input: []int64{0, 30, 5, 7}[n], Output: 1})
		say := []string{"", "use 10", "use 10", "use 7\n" + sayDone}[n]
		_, _ = cmd.Stdout.Write([]byte(say + "\n"))
		return sandboxes.Exit{}, nil
	}}, d)
	c.Meter = m
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if want := (agents.Usage{Input: 30 + 10 + 7, Output: 3}); r.Usage != want {
		t.Errorf("usage %+v, want %+v", r.Usage, want)
	}
	ended := d.eventsOf(EventEnded)
	if len(ended) != 3 || ended[1].Used.Input != 40 || ended[2].Used != r.Usage {
		t.Errorf("events %+v", ended)
	}
}

// Usage that only the agent reports counts for the run. For limits shared with other runs it counts only if no answer passed the
// meter, and its cost if an answer had none: a lying agent stops no other run, and no cost is lost.
func TestOnlyReportedByTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		metered agents.Usage
		passed  MeteredRequests
		says    string
		unseen  agents.Usage
		shared  agents.Usage
	}{
		"a lie":         {agents.Usage{Input: 5, CostUSD: 1}, MeteredRequests{Answered: true}, "use 900\ncost 50", agents.Usage{Input: 895, CostUSD: 49}, agents.Usage{Input: 5, CostUSD: 1}},
		"a failed call": {agents.Usage{}, MeteredRequests{Answered: true}, "use 900\ncost 50", agents.Usage{Input: 900, CostUSD: 50}, agents.Usage{}},
		"no endpoint":   {agents.Usage{}, MeteredRequests{}, "use 900\ncost 50", agents.Usage{}, agents.Usage{Input: 900, CostUSD: 50}},
		"two models, one without a price": {
			agents.Usage{Input: 5, CostUSD: 1}, MeteredRequests{Answered: true, Unpriced: true}, "use 5\ncost 50", agents.Usage{}, agents.Usage{Input: 5, CostUSD: 50},
		},
		"less than was seen": {agents.Usage{Input: 5, CostUSD: 1}, MeteredRequests{Answered: true}, "use 2", agents.Usage{}, agents.Usage{Input: 5, CostUSD: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeMeter()
			cfg := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				m.used, m.passed = c.metered, c.passed
				_, _ = cmd.Stdout.Write([]byte(c.says + "\n"))
				return sandboxes.Exit{}, nil
			}}, &recorder{})
			cfg.Meter, cfg.MaxIterations = m, 1
			r := Run(t.Context(), cfg)
			if r.Unmetered != c.unseen || r.Iterations[0].Unmetered != c.unseen || r.Usage != c.shared.Add(c.unseen) || m.checkedUsage != c.shared {
				t.Errorf("used %+v, unseen %+v, counts for all %+v; want unseen %+v, for all %+v", r.Usage, r.Unmetered, m.checkedUsage, c.unseen, c.shared)
			}
		})
	}
}

// An agent that its service refused because of the budget may end before ralph ends it. The reason is still the budget.
func TestRefusedForTheBudget(t *testing.T) {
	t.Parallel()
	for _, class := range []agents.Class{agents.Auth, agents.RateLimit, agents.OtherFailure} {
		d, m := &recorder{}, newFakeMeter()
		c := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			m.used = agents.Usage{Input: 30} // without a notification
			_, _ = cmd.Stdout.Write([]byte("fail " + string(class) + "\n"))
			return sandboxes.Exit{Code: 1}, nil
		}}, d)
		c.Meter, c.Budget = m, Budget{Tokens: 25}
		wantEnd(t, Run(t.Context(), c), EndBudget)
	}
}

// The gate's usage of the model counts, too.
func TestGateIsCounted(t *testing.T) {
	t.Parallel()
	d, m := &recorder{}, newFakeMeter()
	c := fakeConfig(fakeSandbox{
		agent: printLines(false, "use 10", sayDone),
		shell: func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
			m.count(agents.Usage{Output: 4})
			return sandboxes.Exit{}, nil
		},
	}, d)
	c.Meter, c.Gate = m, []Command{{Line: "ask"}}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if want := (agents.Usage{Input: 10, Output: 4}); r.Usage != want {
		t.Errorf("usage %+v, want %+v", r.Usage, want)
	}
}

// An iteration that has used up its share is ended, the next one gets that as feedback, and the meter limits each iteration.
func TestIterationBudget(t *testing.T) {
	t.Parallel()
	d, m := &recorder{}, newFakeMeter()
	c := fakeConfig(fakeSandbox{agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		m.mu.Lock()
		limit, used := m.limit, m.used
		m.mu.Unlock()
		if want := (Budget{Tokens: used.Tokens() + 25}); limit != want {
			t.Errorf("the service may be asked up to %+v, want %+v", limit, want)
		}
		m.count(agents.Usage{Input: 30})
		<-ctx.Done()
		return sandboxes.Exit{}, context.Cause(ctx)
	}}, d)
	c.Meter, c.Iteration, c.MaxIterations, c.NoProgress = m, Budget{Tokens: 25}, 2, -1
	r := Run(t.Context(), c)
	wantEnd(t, r, EndMaxIterations)
	if len(r.Iterations) != 2 || r.Iterations[0].Ending != EndingIterationBudget || r.Missing != MissingBudget || r.Usage.Tokens() != 60 {
		t.Errorf("%+v, %s", r.Iterations, r.Missing)
	}
	if m.limit != (Budget{}) {
		t.Errorf("after the iterations the limit is %+v", m.limit)
	}
}

// The usage of Verify is added to the agent's, and counts for the budget before the next iteration.
func TestVerifyIsCounted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		budget Budget
		end    End
		input  int64
	}{{Budget{}, EndDone, 10 + 4 + 10 + 4}, {Budget{Tokens: 14}, EndBudget, 10 + 4}} {
		d, m := &recorder{}, newFakeMeter()
		c := fakeConfig(fakeSandbox{agent: printLines(false, "use 10", sayDone)}, d)
		tries := 0
		c.Meter, c.Budget = m, test.budget
		c.Verify = func(context.Context) string {
			m.count(agents.Usage{Input: 4})
			if tries++; tries == 1 {
				return "once more"
			}
			return ""
		}
		r := Run(t.Context(), c)
		wantEnd(t, r, test.end)
		if want := (agents.Usage{Input: test.input}); r.Usage != want {
			t.Errorf("usage %+v, want %+v", r.Usage, want)
		}
	}
}

// A failed iteration without an answered request has cost nothing, unless the agent or the meter reports usage, or requests may
// have passed unseen.
func TestRefusedIterationIsFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		passed MeteredRequests
		says   string
		exit   int
		want   bool
	}{
		"refused":         {MeteredRequests{Answered: true, UsedNothing: true}, "", 1, true},
		"answered":        {MeteredRequests{Answered: true}, "", 1, false},
		"nothing passed":  {MeteredRequests{}, "", 1, false},
		"it says it used": {MeteredRequests{Answered: true, UsedNothing: true}, "use 5", 1, false},
		"it did not fail": {MeteredRequests{Answered: true, UsedNothing: true}, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newFakeMeter()
			cfg := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
				m.passed = c.passed
				_, _ = cmd.Stdout.Write([]byte(c.says + "\n"))
				return sandboxes.Exit{Code: c.exit}, nil
			}}, &recorder{})
			cfg.Meter, cfg.MaxIterations = m, 1
			if r := Run(t.Context(), cfg); r.Iterations[0].UsedNothing != c.want {
				t.Errorf("free %t: %+v", r.Iterations[0].UsedNothing, r.Iterations[0])
			}
		})
	}
}
