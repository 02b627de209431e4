package pool_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
)

func TestUnavailableAgentStopsTheSweepAndCostsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.Config.Run.Agent, f.Config.Run.Options = limitedAgent{}, agents.Options{}
	f.Config.Parallel = 1
	f.issue("a")
	f.issue("b")
	s := f.sweep(t.Context())
	if len(s.Runs) != 1 || s.Unavailable == nil || s.Runs[0].Verdict.Counted {
		t.Fatalf("%+v", s)
	}
	if !s.ParkedUntil.Equal(resetAt) {
		t.Errorf("parked until %s, want %s", s.ParkedUntil, resetAt)
	}
	if strings.Contains(f.text("a"), "ralph:") {
		t.Errorf("the issue was told of a rate limit:\n%s", f.text("a"))
	}
	f.clean()
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || s.Unavailable == nil || !s.ParkedUntil.Equal(resetAt) {
		t.Errorf("the agent was tried again before its time: %+v", s)
	}
	if s := f.sweep(t.Context(), "b"); len(s.Runs) != 1 {
		t.Errorf("a named issue is tried at once: %+v", s)
	}
}

// A limit belongs to one agent and model: others work the issue at once. The wait after a failure is the same for all.
func TestLimitOfAnotherAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*run.Config)
		want int // runs of the next sweep, by the usual agent
	}{
		"another agent": {func(c *run.Config) { c.Agent, c.Options = limitedAgent{}, agents.Options{} }, 1},
		"another model": {func(c *run.Config) {
			c.Agent, c.Options = limitedAgent{name: "command"}, agents.Options{Model: "large"}
		}, 1},
		"the same":  {func(c *run.Config) { c.Agent, c.Options = limitedAgent{name: "command"}, agents.Options{} }, 0},
		"a failure": {func(c *run.Config) { c.Agent, c.Options = limitedAgent{fails: true}, agents.Options{} }, 0},
	} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in another clone: %v", name, elsewhere), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, commits)
				bare := f.withRemote()
				f.issue("a")
				next, usual := f, f.Config
				if elsewhere {
					next = f.clone(bare, commits, "a")
					usual = next.Config
				}
				c.set(&f.Config.Run)
				first := f.one()
				if first.Verdict.RetryAt.IsZero() || first.Verdict.Outcome.Unavailable() == (name == "a failure") {
					t.Fatalf("%+v", first.Verdict)
				}
				next.Config = usual
				if s := next.sweep(t.Context()); len(s.Runs) != c.want || s.Count(journal.Succeeded) != c.want {
					t.Errorf("after %+v: %+v", first.Verdict, s)
				}
				if c.want > 0 {
					return
				}
				if r := next.one("a"); r.Verdict.Outcome != journal.Succeeded {
					t.Errorf("named: %+v", r.Verdict)
				}
			})
		}
	}
}

// resetAt is within the hour that an agent's word is good for.
var resetAt = time.Now().UTC().Truncate(time.Second).Add(50 * time.Minute)

// limitedAgent is an agent whose service is over its rate limit.
type limitedAgent struct {
	agents.Command
	name  string // default "limited"
	fails bool   // for a reason other than the limit
}

func (l limitedAgent) Name() string { return cmp.Or(l.name, "limited") }
func (l limitedAgent) Describe() agents.Description {
	return agents.Description{Program: "true", Models: true}
}
func (limitedAgent) Invocation(agents.Request) (agents.Invocation, error) {
	return agents.Invocation{Argv: []string{"true"}}, nil
}
func (l limitedAgent) NewDecoder() agents.Decoder {
	if l.fails {
		return l.Command.NewDecoder()
	}
	return limitedDecoder{}
}

type limitedDecoder struct{}

func (limitedDecoder) Line([]byte) []agents.Event { return nil }
func (limitedDecoder) Finish(agents.Ending) agents.Report {
	return agents.Report{Failure: &agents.Failure{Class: agents.RateLimit, Message: "slow down", ResetAt: resetAt}}
}
