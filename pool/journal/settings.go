package journal

import (
	"time"

	"github.com/ralph-pool/ralph/loop"
)

// Settings is a snapshot of the settings of a run.
type Settings struct {
	Publish  Publish   `json:"publish"`
	Attended bool      `json:"attended,omitempty"` // a person asked to publish the branch; no agent works
	Require  []string  `json:"require,omitempty"`  // labels by which the issue was selected
	Weaker   string    `json:"weaker,omitempty"`   // a weakness of the sandbox that people have to know
	Limits   Limits    `json:"limits"`
	Checks   Checks    `json:"checks"`
	Review   Reviewing `json:"review,omitzero"`
}

// Checks lists the checks that commits have to pass.
type Checks struct {
	Gate          []loop.Command `json:"gate,omitempty"`
	Clean         bool           `json:"clean,omitempty"`          // also run the gate on a clean checkout of the tip
	Files         GateFiles      `json:"files,omitempty"`          // consequence of changes to the checks themselves
	Plant         bool           `json:"plant,omitempty"`          // add canaries
	Setup         []loop.Command `json:"setup,omitempty"`          // commands before the gate on a clean checkout
	Copy          []string       `json:"copy,omitempty"`           // untracked files for a clean checkout
	Retest        Retesting      `json:"retest,omitempty"`         // what the tests of the change have to show; empty: RetestOff
	RetestCommand string         `json:"retest_command,omitempty"` // command that runs them, with {files} for their paths; empty: chosen by language
}

// GateFiles says what happens if commits change files that the checks depend on.
type GateFiles string

const (
	// GateFilesReport reports the change, and leaves merging to a person.
	GateFilesReport GateFiles = "report"
	// GateFilesRequire also requires the checks to pass with the earlier content of these files.
	GateFilesRequire GateFiles = "require"
	// GateFilesBlock publishes no such change.
	GateFilesBlock GateFiles = "block"
)

// Publish says what happens to the commits of a successful run.
type Publish string

const (
	// PublishBranch leaves them on the branch, and pushes it if there is a remote.
	PublishBranch Publish = "branch"
	// PublishMerge rebases them onto the base, verifies them there, moves the base branch and closes the issue.
	PublishMerge Publish = "merge"
	// PublishRequest pushes the branch and opens or updates a pull or merge request; see Verdict.Draft.
	PublishRequest Publish = "pr"
	// PublishNone leaves them on the local branch.
	PublishNone Publish = "none"
)

// Limits bounds how often an issue is tried.
type Limits struct {
	MaxAttempts int           `json:"max_attempts,omitempty"`
	Backoff     time.Duration `json:"backoff_ns,omitempty"`     // wait after the first failed attempt; doubles with each
	BackoffMax  time.Duration `json:"backoff_max_ns,omitempty"` // upper bound of the doubling
}
