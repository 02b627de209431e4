package journal_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

var parkedAt = time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)

// did returns an iteration that ended at a minute. reset is the minute until which its agent is limited; 0: it worked.
func did(agent string, minute, reset int) loop.Iteration {
	it := loop.Iteration{Agent: agent, Ended: parkedAt.Add(time.Duration(minute) * time.Minute), Ending: loop.EndingExit}
	if reset != 0 {
		it.Failure = &agents.Failure{Class: agents.RateLimit, ResetAt: parkedAt.Add(time.Duration(reset) * time.Minute)}
	}
	return it
}

// ran returns a run after earlier ones. It ended with its last iteration.
func ran(earlier journal.Tally, outcome journal.Outcome, list ...loop.Iteration) journal.Record {
	at := list[len(list)-1].Ended
	r := journal.Record{
		Run:   journal.Run{ID: "r", Host: "h", Key: "k", Earlier: earlier},
		State: journal.State{Facts: journal.Facts{CompletedAt: at, Iterations: list}, Verdict: journal.Verdict{Outcome: outcome}},
	}
	if outcome == journal.AgentUnavailable {
		r.Verdict.RetryAt = list[len(list)-1].Failure.ResetAt
	}
	return r
}

// A run by another agent, of any issue, ends no agent's wait; only a run by the same agent does.
func TestEachAgentHasItsOwnWait(t *testing.T) {
	t.Parallel()
	limited := ran(journal.Tally{}, journal.AgentUnavailable, did("a", 0, 60)).Tally()
	crashed := ran(journal.Tally{}, "", did("a", 0, 60))
	killed := did("a", 3, 0)
	killed.Ending = loop.EndingInterrupted
	noLogin := did("a", 0, 0)
	noLogin.Failure = &agents.Failure{Class: agents.Auth}
	other := ran(journal.Tally{}, journal.Succeeded, did("a", 2, 0))
	elsewhere := ran(journal.Tally{}, journal.AgentUnavailable, did("a", 0, 60))
	elsewhere.Host = "other"
	tests := map[string]struct {
		records []journal.Record
		now     int
		want    []string
	}{
		"limited":                     {[]journal.Record{ran(journal.Tally{}, journal.AgentUnavailable, did("a", 0, 60))}, 1, []string{"a"}},
		"the time is over":            {[]journal.Record{ran(journal.Tally{}, journal.AgentUnavailable, did("a", 0, 60))}, 60, nil},
		"another agent went on":       {[]journal.Record{ran(limited, journal.Succeeded, did("b", 5, 0))}, 6, []string{"a"}},
		"another agent in the run":    {[]journal.Record{ran(journal.Tally{}, journal.Succeeded, did("a", 0, 60), did("b", 5, 0))}, 6, []string{"a"}},
		"ralph died":                  {[]journal.Record{crashed}, 6, []string{"a"}},
		"the agent worked again":      {[]journal.Record{ran(limited, journal.Succeeded, did("a", 5, 0))}, 6, nil},
		"it was only interrupted":     {[]journal.Record{ran(limited, journal.Interrupted, killed)}, 6, []string{"a"}},
		"it works for another issue":  {[]journal.Record{ran(journal.Tally{}, journal.AgentUnavailable, did("a", 0, 60)), other}, 6, nil},
		"limited after that":          {[]journal.Record{ran(journal.Tally{}, journal.AgentUnavailable, did("a", 3, 60)), other}, 6, []string{"a"}},
		"two, the first to come back": {[]journal.Record{ran(limited, journal.AgentUnavailable, did("b", 5, 30))}, 6, []string{"b", "a"}},
		"a login waits for a person":  {[]journal.Record{ran(journal.Tally{}, journal.AgentUnavailable, noLogin)}, 1, nil},
		"the clock was set back":      {[]journal.Record{ran(journal.Tally{}, journal.AgentUnavailable, did("a", 30, 60)), ran(journal.Tally{}, journal.AgentUnavailable, did("b", 0, 60))}, 1, []string{"b"}},
		"another machine":             {[]journal.Record{elsewhere}, 1, nil},
	}
	for name, tt := range tests {
		var got []string
		for _, p := range journal.ParkedIn(tt.records, "h", parkedAt.Add(time.Duration(tt.now)*time.Minute)) {
			got = append(got, p.Agent)
			if p.Key != "k" || p.Class != agents.RateLimit {
				t.Errorf("%s: %+v", name, p)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q is parked, not %q", name, got, tt.want)
		}
	}
}

// An issue waits only while all agents that could work it wait.
func TestWaits(t *testing.T) {
	t.Parallel()
	a, b := agents.Choice{Agent: "a"}, agents.Choice{Agent: "b"}
	both := ran(journal.Tally{}, journal.AgentUnavailable, did("a", 0, 60), did("b", 1, 30)).Tally()
	failed := journal.Tally{Outcome: journal.Failed, At: parkedAt, RetryAt: parkedAt.Add(time.Hour)}
	tests := []struct {
		tally journal.Tally
		now   int
		chain []agents.Choice
		want  bool
	}{
		{both, 2, []agents.Choice{a, b}, true}, {both, 2, []agents.Choice{b}, true}, {both, 31, []agents.Choice{a, b}, false},
		{both, 2, []agents.Choice{a, {Agent: "a", Model: "m"}}, false},
		{both.Restart(journal.Asked{ID: "1"}), 2, []agents.Choice{a, b}, false},
		{failed, 2, []agents.Choice{a}, true}, {failed, 60, []agents.Choice{a}, false},
		// The clock was set back by an hour: nobody waits for that hour.
		{both, -60, []agents.Choice{a}, false}, {failed, -60, []agents.Choice{a}, false}, {failed, -1, []agents.Choice{a}, true},
	}
	for i, tt := range tests {
		if got := tt.tally.MustWait(parkedAt.Add(time.Duration(tt.now)*time.Minute), tt.chain); got != tt.want {
			t.Errorf("%d: waits %t, not %t", i, got, tt.want)
		}
	}
}

// An agent is parked only at the address where its service was unavailable.
func TestParkedAt(t *testing.T) {
	t.Parallel()
	old := []journal.Parked{{Agent: "command", Class: agents.Unreachable, Address: "http://127.0.0.1:1"}}
	for address, parked := range map[string]int{"http://127.0.0.1:1": 1, "http://127.0.0.1:2": 0, "": 0} {
		chain := agents.Chain{{Agent: agents.Command{}, Options: agents.Options{Address: address}}}
		if got := journal.ParkedAt(chain, old); len(got) != parked {
			t.Errorf("at %q: %+v", address, got)
		}
	}
	if text := old[0].Sentence(); !strings.Contains(text, "its model service cannot be reached at http://127.0.0.1:1") {
		t.Error(text)
	}
}
