package pool_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
)

// quotaAgent is an agent that may do a number of iterations, and then reports a limit with its end. Each iteration adds a line
// with the agent's name to a file. The work is done once the file has four lines.
type quotaAgent struct {
	agents.Command
	name  string
	reset time.Time

	mu   *sync.Mutex
	left *int // guarded by mu
	out  *bool
}

func newQuotaAgent(name string, left int, reset time.Time) quotaAgent {
	return quotaAgent{name: name, reset: reset, mu: &sync.Mutex{}, left: &left, out: new(bool)}
}

func (q quotaAgent) Name() string                 { return q.name }
func (q quotaAgent) Describe() agents.Description { return agents.Description{Program: "sh"} }

func (q quotaAgent) Invocation(r agents.Request) (agents.Invocation, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	script := `cat >/dev/null; echo ` + q.name + ` >> work; git add work; git commit -qm "work of ` + q.name + `"; test $(wc -l < work) -lt 4 || echo "<promise>COMPLETE</promise>"`
	if *q.out = *q.left == 0; *q.out { // it has begun something, and is cut off
		script = `cat >/dev/null; echo half > "$RALPH_ISSUE_KEY.half"`
	} else {
		*q.left--
	}
	return agents.Invocation{Argv: []string{"sh", "-c", script}, Stdin: r.Prompt, Env: append(r.Options.Env, r.Vars...)}, nil
}

func (q quotaAgent) NewDecoder() agents.Decoder {
	q.mu.Lock()
	defer q.mu.Unlock()
	if *q.out {
		return quotaDecoder{q.Command.NewDecoder(), q.reset}
	}
	return q.Command.NewDecoder()
}

type quotaDecoder struct {
	agents.Decoder
	reset time.Time
}

func (d quotaDecoder) Finish(agents.Ending) agents.Report {
	return agents.Report{Failure: &agents.Failure{Class: agents.RateLimit, Message: "slow down", ResetAt: d.reset}}
}

// by names the agents of a run's iterations.
func by(r journal.Record) string {
	var names []string
	for _, it := range r.Facts.Iterations {
		names = append(names, it.Agent)
	}
	return strings.Join(names, " ")
}

// Three agents in a chain reach their limits. Each continues in the worktree of the one before, new runs begin with the first
// agent that is available, and each agent has its own waiting time.
func TestChain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	now := time.Now().Truncate(time.Second)
	a, b, c := newQuotaAgent("a", 1, now.Add(30*time.Minute)), newQuotaAgent("b", 1, now.Add(10*time.Minute)), newQuotaAgent("c", 3, now.Add(20*time.Minute))
	f.Config.Run.Agent, f.Config.Run.Options = a, agents.Options{}
	f.Config.Run.Fallback = agents.Chain{{Agent: b}, {Agent: c}}
	f.Config.Run.MaxIterations, f.Config.Parallel = 4, 1
	f.issue("one")
	f.issue("two")
	s := f.sweep(t.Context())
	if len(s.Runs) != 2 {
		t.Fatalf("%+v", s)
	}
	one, two := s.Runs[0], s.Runs[1]
	if one.Verdict.Outcome != journal.Succeeded || by(one) != "a a b b c c" {
		t.Errorf("one: %s by %s, %+v", one.Verdict.Outcome, by(one), one.Verdict.Reason)
	}
	if got := f.git(f.repo, "log", "--reverse", "--format=%s", "main..ralph/one"); got != "work of a\nwork of b\nwork of c\nwork of c" {
		t.Errorf("the commits are %q", got)
	}
	if text := f.text("one"); !strings.Contains(text, "Agent: a, then b, then c, ") {
		t.Errorf("the report names other agents:\n%s", text)
	}
	// The other agents are known to be parked.
	if two.Verdict.Outcome != journal.AgentUnavailable || two.Agent != "c" || by(two) != "c c" || two.Verdict.Counted {
		t.Errorf("two: %s by %s, begun by %s", two.Verdict.Outcome, by(two), two.Agent)
	}
	if s.Unavailable == nil || !s.ParkedUntil.Equal(now.Add(10*time.Minute)) {
		t.Errorf("unavailable %v, until %s", s.Unavailable, s.ParkedUntil)
	}
	want := []string{"b 10m0s", "c 20m0s", "a 30m0s"}
	parked := func(list []journal.Parked) (out []string) {
		for _, p := range list {
			out = append(out, fmt.Sprint(p.Agent, " ", p.Until.Sub(now)))
		}
		return out
	}
	if got := parked(s.Parked); !slices.Equal(got, want) {
		t.Errorf("parked: %q", got)
	}
	f.clean()

	// The next ralph process reads that from the journal, and tries none of them before its time.
	f.Config = f.again()
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || s.Unavailable == nil || !s.ParkedUntil.Equal(now.Add(10*time.Minute)) || !slices.Equal(parked(s.Parked), want) {
		t.Errorf("the next sweep: %+v", s)
	}
	// A run by another agent does not end the wait of these agents.
	usual := f.Config
	f.Config = f.again()
	f.Config.Run.Agent, f.Config.Run.Options, f.Config.Run.Fallback = newQuotaAgent("d", 4, now), agents.Options{}, nil
	if r := f.one(); r.Key != "two" || r.Verdict.Outcome != journal.Succeeded || by(r) != "d" && by(r) != "d d d" && by(r) != "d d" {
		t.Errorf("another agent: %s by %s, %+v", r.Verdict.Outcome, by(r), r.Verdict.Reason)
	}
	f.Config = usual
	f.issue("three")
	if s := f.sweep(t.Context()); len(s.Runs) != 0 || !slices.Equal(parked(s.Parked), want) {
		t.Errorf("after a run by another agent: %+v", s)
	}
	// If a person names the issue, the first agent is tried at once.
	if r := f.one("three"); by(r) != "a b c" {
		t.Errorf("named: by %s", by(r))
	}
}

// again returns the configuration of a new process.
func (f *fixture) again() (c pool.Config) {
	c = f.Config
	c.Run.Repo = f.open("")
	return c
}

// Attempts names the agent of each attempt; the last one also does all later attempts.
func TestAttempts(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	small, large := newQuotaAgent("small", 9, time.Time{}), newQuotaAgent("large", 9, time.Time{})
	f.Config.Run.Agent, f.Config.Run.Options = small, agents.Options{}
	f.Config.Run.Attempts = agents.Chain{{Agent: small}, {Agent: large}}
	f.Config.Run.MaxIterations, f.Config.Run.Retry = 1, journal.Limits{MaxAttempts: 3, Backoff: -1}
	f.issue("a")
	var got []string
	for range 3 {
		s := f.sweep(t.Context())
		for _, r := range s.Runs {
			got = append(got, r.Agent+": "+by(r))
		}
	}
	if want := []string{"small: small", "large: large", "large: large"}; !slices.Equal(got, want) {
		t.Errorf("attempts by %q, not %q", got, want)
	}
}

// After a refusal fewer runs are worked at once, even by another model of the same agent.
func TestFewerRunsAfterARefusal(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	f.Config.Run.Agent, f.Config.Run.Options = limitedAgent{name: "x"}, agents.Options{Model: "large"}
	f.Config.Run.Fallback = agents.Chain{{Agent: newQuotaAgent("x", 9, time.Time{})}}
	f.Config.Run.MaxIterations = 4
	f.issue("a")
	s := f.sweep(t.Context())
	if s.Count(journal.Succeeded) != 1 || s.Parallel >= s.MaxParallel || s.MaxParallel != 4 {
		t.Errorf("%d of %d at once: %+v", s.Parallel, s.MaxParallel, s.Runs)
	}
	list, err := parking.ReadSlow(filepath.Join(f.state, "slow"), time.Now())
	if err != nil || len(list) != 1 || list[0].Agent != "x" || list[0].Limit != 2 || list[0].Most != 4 {
		t.Errorf("other processes see %+v, %v", list, err)
	}
}
