package journal

import (
	"time"
)

// Proving is what happens when the tests of a change do not show what it does.
type Proving string

const (
	// ProvingOff: nobody asks.
	ProvingOff Proving = "off"
	// ProvingReport: people are told.
	ProvingReport Proving = "report"
	// ProvingRequire: the commits are no success.
	ProvingRequire Proving = "require"
)

// On reports that the tests of a change are asked for.
func (p Proving) On() bool { return p != "" && p != ProvingOff }

// Retest is the result of a change's tests with it and without: those that are new or changed ran on its base, where they must
// fail, and on its tip, where they must pass.
type Retest struct {
	Tip      string  `json:"tip"`
	Tree     string  `json:"tree"`               // of the tip: other commits with the same files need no other tests
	Base     string  `json:"base"`               // the commit that was changed
	Required bool    `json:"required,omitempty"` // the commits are no success unless it is Settled
	Proved   bool    `json:"proved,omitempty"`   // each of Runs fails without the change and passes with it; or, without Runs, the base's own gate does
	Exempt   bool    `json:"exempt,omitempty"`   // there is nothing to prove
	Why      string  `json:"why,omitempty"`      // why it is not proved, or what is in the place of Runs; quotes hostile paths
	Runs     []Rerun `json:"runs,omitempty"`
}

// Rerun is one command that runs tests of the change.
type Rerun struct {
	Command string   `json:"command"`
	Files   []string `json:"files"`
	Base    Ran      `json:"base"`
	Tip     *Ran     `json:"tip,omitempty"` // nil: it was not tried
}

// Ran is how such a command ended.
type Ran struct {
	How      How           `json:"how"`
	ExitCode int           `json:"exit_code"`
	Duration time.Duration `json:"duration_ns"`
	Log      string        `json:"log"`            // file in the run's folder
	Tail     string        `json:"tail,omitempty"` // end of what it printed, where it should have passed; hostile
}

// How is how tests ended. It is a closed set.
type How string

const (
	RanPassed  How = "passed"
	RanFailed  How = "failed"
	RanUnbuilt How = "unbuilt"   // they could not be built or loaded, as where the code that they test is missing
	RanTooLong How = "timed-out" // they did not end in time
	RanNone    How = "none"      // no test ran
	RanNot     How = "not-run"   // the command could not be started
)

// Failed reports tests that failed in one way or another.
func (r Ran) Failed() bool { return r.How == RanFailed || r.How == RanUnbuilt || r.How == RanTooLong }

// Proves reports that the tests fail without the change and pass with it.
func (r Rerun) Proves() bool { return r.Base.Failed() && r.Tip != nil && r.Tip.How == RanPassed }

// Settled reports that nothing is left to prove.
func (r *Retest) Settled() bool { return r.Proved || r.Exempt }

// Refused reports that a proof was demanded and there is none. It may be called on nil: none was demanded, or it has not been
// tried.
func (r *Retest) Refused() bool { return r != nil && r.Required && !r.Settled() }
