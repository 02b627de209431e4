package journal

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// Tally summarises the runs of an issue on all machines. All limits are checked against it. After a final run only the
// rounds keep counting, because a person has taken over.
type Tally struct {
	// The latest run that has ended; empty if there is none.
	Run     string    `json:"run,omitempty"`
	Host    string    `json:"host,omitempty"`
	Outcome Outcome   `json:"outcome,omitempty"`
	Hash    string    `json:"hash,omitempty"` // hash of the text in that run
	Tip     string    `json:"tip,omitempty"`
	At      time.Time `json:"at,omitzero"`
	RetryAt time.Time `json:"retry_at,omitzero"`
	Final   bool      `json:"final,omitempty"`
	Stopped bool      `json:"stopped,omitempty"` // a person has stopped it, or has taken the issue away
	// Runs is the number of ended runs, as far as known. It orders two tallies, because the clocks of machines differ.
	Runs int `json:"runs,omitempty"`

	Attempts int          `json:"attempts,omitempty"` // attempts used up
	Failures int          `json:"failures,omitempty"` // failures, including those that used up no attempt
	Rounds   int          `json:"rounds,omitempty"`   // follow-up runs since the last run that was not one
	Spent    agents.Usage `json:"spent,omitzero"`     // includes runs in progress
	// Open is the part of Spent that belongs to runs without an end, by run. Such runs may have died on other machines.
	Open map[string]agents.Usage `json:"open,omitempty"`

	Parked []Parked `json:"parked,omitempty"` // agents that were unavailable when the latest run ended, each with its own waiting time

	Asked    *Asked   `json:"asked,omitempty"`    // a person's request to the next run; nil: none
	Commands []string `json:"commands,omitempty"` // IDs of the last commands that were carried out
}

// Asked is a person's request, made with a command, to the runs of an issue. It is valid until a final end.
type Asked struct {
	ID      string    `json:"id"` // ID of the command
	By      string    `json:"by"`
	At      time.Time `json:"at"`
	Text    string    `json:"text,omitempty"`    // text for the agent; data
	Fresh   bool      `json:"fresh,omitempty"`   // start at the base
	Request bool      `json:"request,omitempty"` // work on the open request
	// Labelled says that the command has added the pick-up label: this approves only the last run's text.
	Labelled bool `json:"labelled,omitempty"`
}

// maxCommands is the number of command IDs that are remembered. It exceeds the number of commands that can wait to be
// marked as answered.
const maxCommands = 16

// maxOpen is the maximum number of runs in Open.
const maxOpen = 32

// With returns the tally with a person's request from another tally of the same issue, unless this one has it.
func (t Tally) With(other Tally) Tally {
	if a := other.Asked; a != nil && !slices.Contains(t.Commands, a.ID) {
		t = t.Restart(*a)
		t.Attempts, t.Failures, t.Rounds, t.Spent, t.Open = other.Attempts, other.Failures, other.Rounds, other.Spent, other.Open // counted since the request
	}
	return t
}

// WithOpen returns the tally with the usage of open runs from another tally of the same issue.
func (t Tally) WithOpen(other Tally) Tally {
	for run, used := range other.Open {
		if run != t.Run {
			t = t.withUsage(run, used, true)
		}
	}
	return t
}

// withUsage returns the tally with a run's total usage. on says that the run has not ended.
func (t Tally) withUsage(run string, u agents.Usage, on bool) Tally {
	before, known := t.Open[run]
	u = u.Larger(before)
	if known {
		t.Spent = t.Spent.Minus(before)
	}
	t.Spent, t.Open = t.Spent.Add(u), maps.Clone(t.Open)
	delete(t.Open, run)
	if on && u != (agents.Usage{}) {
		if t.Open == nil {
			t.Open = map[string]agents.Usage{}
		}
		t.Open[run] = u
	}
	if len(t.Open) > maxOpen {
		delete(t.Open, slices.Min(slices.Collect(maps.Keys(t.Open)))) // the oldest run: IDs sort by time
	}
	if len(t.Open) == 0 {
		t.Open = nil
	}
	return t
}

// Next returns the tally as it is for the next run: after a final end, a person has started the issue again.
func (t Tally) Next() Tally {
	if !t.Final {
		return t
	}
	t.Attempts, t.Failures, t.Spent = 0, 0, agents.Usage{}
	for _, u := range t.Open { // their usage has continued since
		t.Spent = t.Spent.Add(u)
	}
	return t
}

// Restart returns the tally after a person has asked for another run: counts and waiting times start anew.
func (t Tally) Restart(a Asked) Tally {
	t.Attempts, t.Failures, t.Rounds, t.Spent, t.Open, t.RetryAt, t.Final = 0, 0, 0, agents.Usage{}, nil, time.Time{}, false
	t.Asked, t.Stopped = &a, false
	t.Commands = append(slices.Clone(t.Commands[max(0, len(t.Commands)+1-maxCommands):]), a.ID)
	return t
}

// IsNewer reports whether the tally includes more ended runs than the other. If one of them has no count, the times decide.
func (t Tally) IsNewer(other Tally) bool {
	if t.Runs == other.Runs || t.Runs == 0 || other.Runs == 0 {
		return t.At.After(other.At)
	}
	return t.Runs > other.Runs
}

// MustWait reports whether it is too early for a run with any of these agents. An unavailable agent delays only itself.
func (t Tally) MustWait(now time.Time, chain []agents.Choice) bool {
	if on := isWaiting(t.At, t.RetryAt, now); !on || t.Outcome != AgentUnavailable {
		return on
	}
	return !slices.ContainsFunc(chain, func(c agents.Choice) bool {
		return !slices.ContainsFunc(t.Parked, func(p Parked) bool { return p.Choice() == c && p.IsWaiting(now) })
	})
}

// Tally returns the tally including this run. If the run has not ended, only its usage counts.
func (r Record) Tally() Tally {
	v := r.Verdict
	t := r.Earlier.Next().withUsage(r.ID, r.Facts.Usage, v.Outcome == "")
	t.Parked = r.parkedAgents()
	if v.Outcome == "" {
		return t
	}
	t.Run, t.Host, t.Outcome, t.Hash, t.Tip = r.ID, r.Host, v.Outcome, cmp.Or(r.Run.Hash, t.Hash), cmp.Or(r.Tip, t.Tip)
	t.At, t.RetryAt, t.Final, t.Runs, t.Stopped = r.Facts.CompletedAt, v.RetryAt, v.Final, t.Runs+1, v.byPerson()
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

// History is the list of the runs of one issue, oldest first.
type History []Record

// Last returns the latest run that has ended.
func (h History) Last() (Record, bool) {
	for _, r := range slices.Backward(h) {
		if !r.Ended.IsZero() {
			return r, true
		}
	}
	return Record{}, false
}

// LostTip returns the tip of the latest run with commits if that run has succeeded and its branch is at another commit; "" otherwise.
// The branch may have been moved back, for example by the end of a rebase.
func (h History) LostTip(branchTip string) string {
	for _, r := range slices.Backward(h) {
		if r.Ended.IsZero() || r.Commits > 0 && r.Tip != "" {
			if r.Verdict.Outcome != Succeeded || r.Tip == branchTip {
				return ""
			}
			return r.Tip
		}
	}
	return ""
}

// Begun returns the runs that reached the agent's work. Runs that ended earlier have left nothing for the next one.
func (h History) Begun() History {
	return slices.DeleteFunc(slices.Clone(h), func(r Record) bool {
		f := r.Facts
		return f.Open != nil || f.StoppedStage != "" && f.StoppedStage.Before(StageWork)
	})
}
