package journal

import (
	"slices"
	"time"
)

// Retesting says what happens if the tests of a change do not prove its effect.
type Retesting string

const (
	// RetestOff disables retests.
	RetestOff Retesting = "off"
	// RetestReport reports it to people.
	RetestReport Retesting = "report"
	// RetestRequire means that the run does not succeed.
	RetestRequire Retesting = "require"
)

// On reports whether retests are enabled.
func (p Retesting) On() bool { return p != "" && p != RetestOff }

// Retest is the result of a change's new or changed tests. They ran on the change's base, where they must fail, and on its
// tip, where they must pass.
type Retest struct {
	Tip      string  `json:"tip"`
	Tree     string  `json:"tree"`               // tree of the tip: commits with the same files need no other retest
	Base     string  `json:"base"`               // the commit before the change
	Required bool    `json:"required,omitempty"` // the run succeeds only if the retest is Settled
	Proved   bool    `json:"proved,omitempty"`   // each of Runs fails without the change and passes with it; without Runs, this holds for the gate of the base
	Already  bool    `json:"already,omitempty"`  // the gate of the base failed before the change, so that it may fail for another reason
	Exempt   bool    `json:"exempt,omitempty"`   // there is nothing to prove
	Why      string  `json:"why,omitempty"`      // why it is not proved, or what replaces Runs; quotes hostile paths
	Runs     []Rerun `json:"runs,omitempty"`
}

// Rerun is a command that runs tests of the change.
type Rerun struct {
	Command string   `json:"command"`
	Files   []string `json:"files"`
	Base    TestRun  `json:"base"`
	Tip     *TestRun `json:"tip,omitempty"` // nil: not tried
}

// TestRun is the result of such a command.
type TestRun struct {
	Outcome  TestOutcome   `json:"how"`
	ExitCode int           `json:"exit_code"`
	Duration time.Duration `json:"duration_ns"`
	Log      string        `json:"log"`            // file in the run's folder
	Tail     string        `json:"tail,omitempty"` // end of the output, if the tests should have passed; hostile
}

// TestOutcome is how tests ended. It is a closed set.
type TestOutcome string

const (
	TestsPassed     TestOutcome = "passed"
	TestsFailed     TestOutcome = "failed"
	TestsNotBuilt   TestOutcome = "unbuilt"   // they could not be built or loaded, for example because the tested code is missing
	TestsTimedOut   TestOutcome = "timed-out" // they did not end in time
	TestsNone       TestOutcome = "none"      // no test ran
	TestsNotStarted TestOutcome = "not-run"   // the command could not be started
)

// Failed reports whether tests failed, in any way.
func (r TestRun) Failed() bool {
	return r.Outcome == TestsFailed || r.Outcome == TestsNotBuilt || r.Outcome == TestsTimedOut
}

// Proves reports whether the tests fail without the change and pass with it.
func (r Rerun) Proves() bool { return r.Base.Failed() && r.Tip != nil && r.Tip.Outcome == TestsPassed }

// NotStarted reports whether a command could not run tests at all. That says nothing about the change.
func (r *Retest) NotStarted() bool {
	return slices.ContainsFunc(r.Runs, func(one Rerun) bool {
		return one.Base.Outcome == TestsNotStarted || one.Tip != nil && one.Tip.Outcome == TestsNotStarted
	})
}

// Settled reports whether nothing is left to prove.
func (r *Retest) Settled() bool { return r.Proved || r.Exempt }

// Refused reports whether a retest was required and did not prove the change. On nil it returns false: none was
// required, or none was tried.
func (r *Retest) Refused() bool { return r != nil && r.Required && !r.Settled() }
