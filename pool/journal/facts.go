package journal

import (
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/tracker"
)

// Facts is what is known of a run. Stages collect facts and do not interpret them.
type Facts struct {
	Kind     Kind      `json:"kind,omitempty"`
	Limits   Limits    `json:"limits,omitzero"`
	Attempt  int       `json:"attempt,omitempty"`
	Files    GateFiles `json:"gate_files,omitempty"`
	Failures int       `json:"failures,omitempty"` // number of failed runs in a row before this one

	Stop         Stop          `json:"stop,omitempty"`    // why the run was stopped early
	StopBy       string        `json:"stop_by,omitempty"` // detail of Stop
	Unfit        tracker.Unfit `json:"unfit,omitzero"`    // for StopSuperseded
	StoppedStage Stage         `json:"cut,omitempty"`     // the stage that was stopped; empty: none
	Open         *Fault        `json:"open,omitempty"`    // why the worktree or the sandbox could not be made

	// Reported is the outcome that was already reported, before this run died or since then by another machine. The run's
	// claim records it.
	Reported Outcome `json:"reported,omitempty"`

	End         loop.End         `json:"end,omitempty"` // why the loop ended; empty: it did not run
	EndDetail   string           `json:"end_detail,omitempty"`
	Starved     bool             `json:"starved,omitempty"`         // the machine lacked resources for an import, or the engine was away
	Optional    bool             `json:"signal_optional,omitempty"` // the completion signal was not required
	Iterations  []loop.Iteration `json:"iterations,omitempty"`
	Failure     *agents.Failure  `json:"failure,omitempty"` // failure of the last iteration
	AvailableAt time.Time        `json:"back,omitzero"`     // when the first of several unavailable agents is expected to be available
	Commits     int              `json:"commits,omitempty"`
	Unchanged   bool             `json:"unchanged,omitempty"` // the commits leave all files as they are in the base
	Tip         string           `json:"tip,omitempty"`       // the loop's final tip, with its messages as they are now
	Gate        []loop.Check     `json:"gate,omitempty"`      // results of the gate's last run
	GateRan     bool             `json:"gate_ran,omitempty"`
	Message     string           `json:"message,omitempty"` // the agent's last message; hostile
	Question    string           `json:"question,omitempty"`
	NoChange    string           `json:"no_change,omitempty"` // the agent's reason why nothing needs to be done
	Usage       agents.Usage     `json:"usage,omitzero"`
	SignalTip   string           `json:"said,omitempty"`      // tip at which the agent said that it is done, before its checks decide
	Said        bool             `json:"said_next,omitempty"` // the agent said that it is done, and its work is not imported yet
	UsedNothing bool             `json:"free,omitempty"`      // ralph saw that the agents used nothing: none of their requests was answered
	Capped      bool             `json:"capped,omitempty"`    // the run ended because of a cap of the project, not because of the budget
	Exit        *int             `json:"exit,omitempty"`      // KindCommand: the command's exit status

	Baseline    *Verification `json:"baseline,omitempty"` // the gate on the base, before the agent's work
	Verify      *Verification `json:"verify,omitempty"`   // the gate on a clean checkout of the tip
	Watch       *Watch        `json:"watch,omitempty"`    // changes that the commits make to their own checks
	Retest      *Retest       `json:"retest,omitempty"`   // the change's tests with it and without it; nil: not required, or not yet run
	Review      *Review       `json:"review,omitempty"`   // nil: not required, or not yet done
	ReviewSpend ReviewSpend   `json:"review_spend,omitzero"`
	Policy      []string      `json:"policy,omitempty"`   // violations of the policy
	Conflict    string        `json:"conflict,omitempty"` // the commits no longer apply to the base
	Solve       []string      `json:"solve,omitempty"`    // git commands by which a person solves the conflict
	Hopeless    bool          `json:"hopeless,omitempty"` // no later attempt can solve the conflict
	Publish     *Fault        `json:"publish,omitempty"`  // why the commits could not be published
	Tries       int           `json:"publish_tries,omitempty"`
	Done        bool          `json:"done,omitempty"`     // publishing is complete
	Gone        bool          `json:"gone,omitempty"`     // the issue no longer exists
	Edited      bool          `json:"edited,omitempty"`   // the text has changed since the run took it
	Outdated    bool          `json:"outdated,omitempty"` // the text had changed when the commits were about to be published
	CompletedAt time.Time     `json:"at,omitzero"`        // when the facts were complete
}

// Unmetered returns the part of Usage that only agents have reported, although ralph saw their services' answers. It counts
// for the run and its issue, but not for the project's caps.
func (f Facts) Unmetered() (u agents.Usage) {
	for _, it := range f.Iterations {
		u = u.Add(it.Unmetered)
	}
	return u.Add(f.ReviewSpend.Unseen)
}

// UsedNothing reports whether agents were started and used nothing, as observed by ralph.
func UsedNothing(list []loop.Iteration) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(it loop.Iteration) bool { return !it.UsedNothing })
}

// Metered returns the part of Usage that counts for the project's caps.
func (f Facts) Metered() agents.Usage { return f.Usage.Minus(f.Unmetered()) }

// Died reports whether ralph died during the run, or an outage kept the run from starting.
func (f Facts) Died() bool { return f.Stop == StopCrash || f.Open.IsUnavailable() }

// DropOtherTips drops results about other commits than the tip.
func (f *Facts) DropOtherTips(tip string) {
	if f.Verify != nil && f.Verify.Tip != tip {
		f.Verify, f.Watch = nil, nil
	}
	if f.Retest != nil && f.Retest.Tip != tip {
		f.Retest = nil
	}
}

// PlaceSignal says that the agent was done at the tip of the work that has just been imported, if it has said so before.
func (f *Facts) PlaceSignal(work loop.Work) {
	if f.Said && work.Commits > 0 {
		f.SignalTip = work.Tip
	}
	f.Said = false
}

// GatePassed reports whether the gate ran in the worktree and every command passed.
func (f Facts) GatePassed() bool { return f.GateRan && loop.AllPassed(f.Gate) }
