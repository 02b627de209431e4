package journal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// Tally sums up the runs of an issue, on all machines. All limits are judged by it. Nothing but the
// rounds counts from before the last final run: a person has taken over since.
type Tally struct {
	// Of the latest run that ended; empty: there was none.
	Run     string    `json:"run,omitempty"`
	Host    string    `json:"host,omitempty"`
	Outcome Outcome   `json:"outcome,omitempty"`
	Hash    string    `json:"hash,omitempty"` // of the text that was worked
	Tip     string    `json:"tip,omitempty"`
	At      time.Time `json:"at,omitzero"`
	RetryAt time.Time `json:"retry_at,omitzero"`
	Final   bool      `json:"final,omitempty"`
	Stopped bool      `json:"stopped,omitempty"` // a person has stopped it, or taken the issue away
	// Runs is how many have ended, as far as is known. It says which of two tallies is later: clocks of machines differ.
	Runs int `json:"runs,omitempty"`

	Attempts int          `json:"attempts,omitempty"` // used up
	Failures int          `json:"failures,omitempty"` // those that used up no attempt included
	Rounds   int          `json:"rounds,omitempty"`   // follow-up runs since the issue was last worked on its own account
	Spent    agents.Usage `json:"spent,omitzero"`     // by runs that are on, too
	// Open is the part of Spent whose runs have not ended, by run. They may have died, on other machines.
	Open map[string]agents.Usage `json:"open,omitempty"`

	Parked []Parked `json:"parked,omitempty"` // agents that were unavailable when the latest run ended; each has its own wait

	Asked    *Asked   `json:"asked,omitempty"`    // what a person has asked the next run for; nil: nothing
	Commands []string `json:"commands,omitempty"` // ids of the last commands that were carried out
}

// Asked is what a person has asked of the runs of an issue, with a command. It holds until a final end.
type Asked struct {
	ID      string    `json:"id"` // of the command
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Text    string    `json:"text,omitempty"`    // for the agent; data
	Fresh   bool      `json:"fresh,omitempty"`   // begin at the base
	Request bool      `json:"request,omitempty"` // work on the open request
	// Labelled says that the command has put the pick-up label on: that approves no other text than the last run's.
	Labelled bool `json:"labelled,omitempty"`
}

// commandsKept is how many ids of commands are remembered: more than are given before they are marked as answered.
const commandsKept = 16

// openKept is how many runs Open has at most.
const openKept = 32

// With is the tally with what a person has asked for as another tally of the same issue knows it, if this one does not.
func (t Tally) With(other Tally) Tally {
	if a := other.Asked; a != nil && !slices.Contains(t.Commands, a.ID) {
		t = t.Restart(*a)
		t.Attempts, t.Failures, t.Rounds, t.Spent, t.Open = other.Attempts, other.Failures, other.Rounds, other.Spent, other.Open // since then
	}
	return t
}

// WithOpen is the tally with the usage of open runs that another tally of the same issue knows.
func (t Tally) WithOpen(other Tally) Tally {
	for run, used := range other.Open {
		if run != t.Run {
			t = t.used(run, used, true)
		}
	}
	return t
}

// used is the tally when a run has used so much in all. on: the run has not ended.
func (t Tally) used(run string, u agents.Usage, on bool) Tally {
	before, known := t.Open[run]
	u = u.Larger(before)
	if known {
		t.Spent = t.Spent.Less(before)
	}
	t.Spent, t.Open = t.Spent.Add(u), maps.Clone(t.Open)
	delete(t.Open, run)
	if on && u != (agents.Usage{}) {
		if t.Open == nil {
			t.Open = map[string]agents.Usage{}
		}
		t.Open[run] = u
	}
	if len(t.Open) > openKept {
		delete(t.Open, slices.Min(slices.Collect(maps.Keys(t.Open)))) // the oldest: ids sort by time
	}
	if len(t.Open) == 0 {
		t.Open = nil
	}
	return t
}

// Next is the tally as the next run finds it: after a final end, a person has started the issue again.
func (t Tally) Next() Tally {
	if !t.Final {
		return t
	}
	t.Attempts, t.Failures, t.Spent = 0, 0, agents.Usage{}
	for _, u := range t.Open { // it has gone on since
		t.Spent = t.Spent.Add(u)
	}
	return t
}

// Restart is the tally once a person has asked for another run: counts and waiting times start anew.
func (t Tally) Restart(a Asked) Tally {
	t.Attempts, t.Failures, t.Rounds, t.Spent, t.Open, t.RetryAt, t.Final = 0, 0, 0, agents.Usage{}, nil, time.Time{}, false
	t.Asked, t.Stopped = &a, false
	t.Commands = append(slices.Clone(t.Commands[max(0, len(t.Commands)+1-commandsKept):]), a.ID)
	return t
}

// Later reports that more runs have ended than the other tally knows of. Where either does not count them, the clocks tell.
func (t Tally) Later(other Tally) bool {
	if t.Runs == other.Runs || t.Runs == 0 || other.Runs == 0 {
		return t.At.After(other.At)
	}
	return t.Runs > other.Runs
}

// Waits reports that it is too early for a run by the first of these agents that can: an agent that was unavailable keeps
// only itself waiting.
func (t Tally) Waits(now time.Time, chain []agents.Choice) bool {
	if on := waits(t.At, t.RetryAt, now); !on || t.Outcome != AgentUnavailable {
		return on
	}
	return !slices.ContainsFunc(chain, func(c agents.Choice) bool {
		return !slices.ContainsFunc(t.Parked, func(p Parked) bool { return p.Choice() == c && p.Waits(now) })
	})
}

// Tally is the tally with this run. Of a run that has not ended only its spending counts.
func (r Record) Tally() Tally {
	v := r.Verdict
	t := r.Earlier.Next().used(r.ID, r.Facts.Usage, v.Outcome == "")
	t.Parked = r.parked()
	if v.Outcome == "" {
		return t
	}
	t.Run, t.Host, t.Outcome, t.Hash, t.Tip = r.ID, r.Host, v.Outcome, cmp.Or(r.Run.Hash, t.Hash), cmp.Or(r.Tip, t.Tip)
	t.At, t.RetryAt, t.Final, t.Runs, t.Stopped = r.Facts.At, v.RetryAt, v.Final, t.Runs+1, v.byPerson()
	if v.Final {
		t.Open = nil
	}
	if v.Counted {
		t.Attempts++
	}
	if v.Outcome.UsesAttempt() || v.Reason.Code == ReasonCrash || v.Reason.Code == ReasonMachine {
		t.Failures++
	}
	free := v.Blameless()
	if a := t.Asked; a != nil && !free && (v.Final || a.Fresh) {
		t.Asked = nil
	}
	switch {
	case free:
	case r.FollowUp == "":
		t.Rounds = 0
	default:
		t.Rounds++
	}
	return t
}

// History is the runs of one issue, oldest first.
type History []Record

// Last is the latest run that ended.
func (h History) Last() (Record, bool) {
	for i := len(h) - 1; i >= 0; i-- {
		if !h[i].Ended.IsZero() {
			return h[i], true
		}
	}
	return Record{}, false
}

// Begun are the runs that came as far as the agent's work. What ended before has left nothing for the next run.
func (h History) Begun() History {
	return slices.DeleteFunc(slices.Clone(h), func(r Record) bool {
		f := r.Facts
		return f.Open != nil || f.Cut != "" && f.Cut.Before(StageWork)
	})
}
