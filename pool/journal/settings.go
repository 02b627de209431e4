package journal

import (
	"time"

	"github.com/ralph-pool/ralph/loop"
)

// Settings is the settings snapshot of a run.
type Settings struct {
	Publish  Publish   `json:"publish"`
	Attended bool      `json:"attended,omitempty"` // a person wants what is on the branch published; no agent works
	Require  []string  `json:"require,omitempty"`  // labels the issue was picked up by
	Weaker   string    `json:"weaker,omitempty"`   // what people have to know of the sandbox
	Limits   Limits    `json:"limits"`
	Checks   Checks    `json:"checks"`
	Review   Reviewing `json:"review,omitzero"`
}

// Checks are what commits have to pass.
type Checks struct {
	Gate  []loop.Command `json:"gate,omitempty"`
	Clean bool           `json:"clean,omitempty"` // on a clean checkout of the tip, too
	Files GateFiles      `json:"files,omitempty"` // what changes to the checks themselves mean
	Plant bool           `json:"plant,omitempty"` // tests that must fail are planted
	Setup []loop.Command `json:"setup,omitempty"` // run before the gate on a clean checkout
	Copy  []string       `json:"copy,omitempty"`  // untracked files that a clean checkout gets
	Proof Proving        `json:"proof,omitempty"` // what the tests of the change have to show; empty: ProvingOff
	Prove string         `json:"prove,omitempty"` // command that runs them, with {files} in their place; empty: by language
}

// GateFiles is what happens when commits change files that the checks depend on.
type GateFiles string

const (
	// GateFilesReport: people are told, and nothing is merged without one.
	GateFilesReport GateFiles = "report"
	// GateFilesRequire: the checks have to pass with these files as they were, too.
	GateFilesRequire GateFiles = "require"
	// GateFilesBlock: no such change is published.
	GateFilesBlock GateFiles = "block"
)

// Publish is what happens to the commits of a run that succeeded.
type Publish string

const (
	// PublishBranch leaves them on the branch, and pushes it where there is a remote.
	PublishBranch Publish = "branch"
	// PublishMerge rebases them onto the base, verifies them there, moves the base branch, and closes the issue.
	PublishMerge Publish = "merge"
	// PublishRequest pushes the branch and opens or updates a pull or merge request; see Verdict.Draft.
	PublishRequest Publish = "pr"
	// PublishNone leaves them on the local branch.
	PublishNone Publish = "none"
)

// Limits bound how often an issue is tried.
type Limits struct {
	MaxAttempts int           `json:"max_attempts,omitempty"`
	Backoff     time.Duration `json:"backoff_ns,omitempty"`     // after the first failed attempt; doubles with each
	BackoffMax  time.Duration `json:"backoff_max_ns,omitempty"` // upper bound of the doubling
}
