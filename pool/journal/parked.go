package journal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
)

// Parked is an agent that is temporarily unavailable with a model. Each has its own waiting time.
type Parked struct {
	Agent string       `json:"agent"`
	Model string       `json:"model,omitempty"` // empty: the agent's default
	Class agents.Class `json:"class"`
	Host  string       `json:"host,omitempty"` // host that observed it: another host may use another account
	At    time.Time    `json:"at,omitzero"`    // time of the observation
	Until time.Time    `json:"until,omitzero"` // zero: until a person acts, for example logs in
	Key   string       `json:"issue,omitempty"`
	// Address is the service's address, if the user had set it: at another address the agent may be available.
	Address string `json:"address,omitempty"`
}

// Choice returns the agent and the model.
func (p Parked) Choice() agents.Choice { return agents.Choice{Agent: p.Agent, Model: p.Model} }

// IsWaiting reports whether the agent is unavailable now and will be available without a person's action.
func (p Parked) IsWaiting(now time.Time) bool { return isWaiting(p.At, p.Until, now) }

// Sentence says until when and why the agent is unavailable.
func (p Parked) Sentence() string {
	why := map[agents.Class]string{
		agents.RateLimit:   "its limit is reached",
		agents.Overload:    "its model service is overloaded",
		agents.Unreachable: "its model service cannot be reached",
		agents.Auth:        "it is not logged in",
		agents.NoCredit:    "its account has no credit left",
		agents.NotStarted:  "its program cannot be started",
	}[p.Class]
	if p.Class == agents.Unreachable && p.Address != "" {
		why += " at " + p.Address
	}
	text := fmt.Sprintf("Agent %s is parked until %s: %s", p.Choice(), p.Until.Local().Format(time.DateTime), why)
	if p.Until.IsZero() {
		text = fmt.Sprintf("Agent %s is not used: %s", p.Choice(), why)
	}
	if p.Key != "" {
		text += " (in a run of " + p.Key + ")"
	}
	return text + "."
}

// clockError is the clock difference tolerated between machines.
const clockError = 15 * time.Minute

// isWaiting reports whether a wait that began at a time is still running. A wait with a beginning in the future counts as over:
// the clock has been set back since, and the wait could last for years.
func isWaiting(at, until, now time.Time) bool {
	return until.After(now) && !at.After(now.Add(clockError))
}

// parkedAgents returns the parked agents after the run's iterations. It leaves out waits that are over when the run's
// facts are complete.
func (r Record) parkedAgents() []Parked {
	list := slices.Clone(r.Earlier.Parked)
	for _, it := range r.Facts.Iterations {
		if p, ok := parkedIn(it); ok || wasAvailable(it) {
			list = slices.DeleteFunc(list, func(old Parked) bool { return old.Choice() == it.Choice() && !old.At.After(it.Ended) })
			if ok && !p.Until.IsZero() {
				p.Host = r.Host
				list = append(list, p)
			}
		}
	}
	list = slices.DeleteFunc(list, func(p Parked) bool { return !p.Until.After(r.Facts.CompletedAt) })
	if len(list) == 0 {
		return nil
	}
	return list
}

// parkedIn returns the agent that was unavailable in an iteration; false if none was, as far as the iteration shows.
func parkedIn(it loop.Iteration) (Parked, bool) {
	if f := it.Failure; f != nil && f.Class.Unavailable() && it.Agent != "" {
		return Parked{Agent: it.Agent, Model: it.Model, Class: f.Class, At: it.Ended, Until: f.AvailableAt(it.Ended), Address: f.Address}, true
	}
	return Parked{}, false
}

// wasAvailable reports whether the agent was available to the end.
func wasAvailable(it loop.Iteration) bool {
	return it.Failure == nil && (it.Ending == loop.EndingExit || it.Ending == loop.EndingGrace)
}

// ParkedAt returns those of the parked agents whose service still has the address at which it was unavailable.
func ParkedAt(chain agents.Chain, list []Parked) []Parked {
	return slices.DeleteFunc(slices.Clone(list), func(p Parked) bool {
		return slices.ContainsFunc(chain, func(l agents.Link) bool { return l.Choice() == p.Choice() && l.Options.Address != p.Address })
	})
}

// ParkedIn returns the agents that are unavailable now, according to the records of any issues on this host. For each agent
// and model only the latest iteration counts.
func ParkedIn(records []Record, host string, now time.Time) []Parked {
	latest := map[agents.Choice]Parked{}
	note := func(p Parked) {
		if old, ok := latest[p.Choice()]; !p.At.After(now.Add(clockError)) && (!ok || p.At.After(old.At)) {
			latest[p.Choice()] = p
		}
	}
	for _, r := range records {
		for _, p := range r.Tally().Parked {
			if p.Host == host {
				p.Key = r.Key
				note(p)
			}
		}
		for _, it := range r.Facts.Iterations {
			if wasAvailable(it) {
				note(Parked{Agent: it.Agent, Model: it.Model, At: it.Ended})
			}
		}
	}
	var list []Parked
	for _, p := range latest {
		if p.IsWaiting(now) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Parked) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Choice().String(), b.Choice().String()))
	})
	return list
}
