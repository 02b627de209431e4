package journal

import (
	"slices"

	"github.com/ralph-pool/ralph/agents"
)

// Review is a second agent's judgement of the commits. That agent had no part in them, and saw the issue, the change and
// the results of the checks. Its text is hostile, but of limited length and cleaned.
type Review struct {
	Tip      string    `json:"tip"`    // the commits that were reviewed
	Change   string    `json:"change"` // digest of the changes, which a rebase may leave unchanged
	Agent    string    `json:"agent"`
	Round    int       `json:"round"`    // 1 is the run's first review
	Accepted bool      `json:"accepted"` // no serious finding, and Solved and Tested are true
	Solved   bool      `json:"solved"`   // the issue is fully solved
	Tested   bool      `json:"tested"`   // the tests cover the solution
	Findings []Finding `json:"findings,omitempty"`
	Failed   string    `json:"failed,omitempty"` // why there is no answer, and so no acceptance; empty: there is an answer
}

// ReviewSpend is the usage of all reviews of a run, including aborted ones. It is part of the run's usage.
type ReviewSpend struct {
	Usage  agents.Usage `json:"usage,omitzero"`
	Unseen agents.Usage `json:"unseen,omitzero"` // part that only the reviewer has reported
}

// Finding is one finding of a reviewer.
type Finding struct {
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"` // 0: no line
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
}

// Severity is the severity of a finding. It is a closed set.
type Severity string

const (
	SeverityCritical Severity = "critical"
	SeverityMajor    Severity = "major"
	SeverityMinor    Severity = "minor" // does not prevent acceptance
)

// Severities lists every severity, most severe first.
func Severities() []Severity { return []Severity{SeverityCritical, SeverityMajor, SeverityMinor} }

// BySeverity returns the findings, most severe first.
func (r *Review) BySeverity() []Finding {
	return slices.SortedStableFunc(slices.Values(r.Findings), func(a, b Finding) int {
		return slices.Index(Severities(), a.Severity) - slices.Index(Severities(), b.Severity)
	})
}

// Refused reports whether a review was required and did not accept the commits. On nil it returns false: no review was
// required.
func (r *Review) Refused() bool { return r != nil && !r.Accepted }

// Reviewing says which agent reviews the commits of a run; the zero value means no review.
type Reviewing struct {
	Agent  string `json:"agent,omitempty"`  // the agent and its model
	Rounds int    `json:"rounds,omitempty"` // how often findings go back to the run's agent
}
