package journal

import (
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/tracker"
)

// Facts are what is known of a run. Stages collect them and interpret nothing.
type Facts struct {
	Kind     Kind      `json:"kind,omitempty"`
	Limits   Limits    `json:"limits,omitzero"`
	Attempt  int       `json:"attempt,omitempty"`
	Files    GateFiles `json:"gate_files,omitempty"`
	Failures int       `json:"failures,omitempty"` // failed runs in a row before this one

	Stop   Stop          `json:"stop,omitempty"`    // why the run was cut short
	StopBy string        `json:"stop_by,omitempty"` // detail of Stop
	Unfit  tracker.Unfit `json:"unfit,omitzero"`    // for StopSuperseded
	Cut    Stage         `json:"cut,omitempty"`     // the stage that was cut short; empty: none was
	Open   *Fault        `json:"open,omitempty"`    // why the worktree or the sandbox could not be made

	// Reported is the outcome that has been reported of this run before it died, or by another machine since. Its claim says so.
	Reported Outcome `json:"reported,omitempty"`

	End        loop.End         `json:"end,omitempty"` // why the loop ended; empty: it did not run
	EndDetail  string           `json:"end_detail,omitempty"`
	Starved    bool             `json:"starved,omitempty"`         // the machine lacked what an import takes, or the engine was away
	Optional   bool             `json:"signal_optional,omitempty"` // the completion signal was not asked for
	Iterations []loop.Iteration `json:"iterations,omitempty"`
	Failure    *agents.Failure  `json:"failure,omitempty"` // of the last iteration
	Back       time.Time        `json:"back,omitzero"`     // when the first of several unavailable agents is expected back
	Commits    int              `json:"commits,omitempty"`
	Unchanged  bool             `json:"unchanged,omitempty"` // the commits leave every file of the base as it was
	Tip        string           `json:"tip,omitempty"`       // what the loop ended on, with its messages as they are now
	Gate       []loop.Check     `json:"gate,omitempty"`      // of the last time it ran
	GateRan    bool             `json:"gate_ran,omitempty"`
	Message    string           `json:"message,omitempty"` // the agent's last words; hostile
	Question   string           `json:"question,omitempty"`
	NoChange   string           `json:"no_change,omitempty"` // why the agent says that nothing needs doing
	Usage      agents.Usage     `json:"usage,omitzero"`
	Said       string           `json:"said,omitempty"`   // the tip at which the agent has said that it is done, while its checks are to decide
	Free       bool             `json:"free,omitempty"`   // ralph saw that agents used nothing: no request of theirs was answered
	Capped     bool             `json:"capped,omitempty"` // it was ended for a cap of the project, and not for the budget
	Exit       *int             `json:"exit,omitempty"`   // KindCommand: the command's exit status

	Baseline    *Verification `json:"baseline,omitempty"` // the gate on the base, before the run
	Verify      *Verification `json:"verify,omitempty"`   // the gate on a clean checkout of the tip
	Watch       *Watch        `json:"watch,omitempty"`    // what the commits did to the checks that they passed
	Retest      *Retest       `json:"retest,omitempty"`   // the change's tests with it and without; nil: none was asked for, or not yet run
	Review      *Review       `json:"review,omitempty"`   // nil: none was asked for, or not yet done
	ReviewSpend ReviewSpend   `json:"review_spend,omitzero"`
	Policy      []string      `json:"policy,omitempty"`   // what the commits may not bring
	Conflict    string        `json:"conflict,omitempty"` // the commits do not fit the base any more
	Publish     *Fault        `json:"publish,omitempty"`  // why the commits could not be published
	Tries       int           `json:"publish_tries,omitempty"`
	Done        bool          `json:"done,omitempty"`     // publishing is over
	Gone        bool          `json:"gone,omitempty"`     // the issue is not there any more
	Edited      bool          `json:"edited,omitempty"`   // the issue is not what the run works from any more
	Outdated    bool          `json:"outdated,omitempty"` // and was not when the commits were about to be published
	At          time.Time     `json:"at,omitzero"`        // when the facts were complete
}

// Unseen is the part of Usage that only agents report, although the answers of their services passed ralph. It counts for the
// run and its issue, and not for what all runs may spend together.
func (f Facts) Unseen() (u agents.Usage) {
	for _, it := range f.Iterations {
		u = u.Add(it.Unseen)
	}
	return u.Add(f.ReviewSpend.Unseen)
}

// Free reports that agents were started and used nothing, as ralph has seen.
func Free(list []loop.Iteration) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(it loop.Iteration) bool { return !it.Free })
}

// Seen is the part of Usage that counts for what all runs may spend together.
func (f Facts) Seen() agents.Usage { return f.Usage.Less(f.Unseen()) }

// Died reports that ralph died during the run, or that an outage kept the run from its start.
func (f Facts) Died() bool { return f.Stop == StopCrash || f.Open.Away() }

// About drops what was found out about other commits than the tip.
func (f *Facts) About(tip string) {
	if f.Verify != nil && f.Verify.Tip != tip {
		f.Verify, f.Watch = nil, nil
	}
	if f.Retest != nil && f.Retest.Tip != tip {
		f.Retest = nil
	}
}

// GatePassed reports that the gate ran in the worktree and every command passed.
func (f Facts) GatePassed() bool { return f.GateRan && loop.AllPassed(f.Gate) }
