package journal

import (
	"slices"

	"github.com/ralph-pool/ralph/agents"
)

// Review is a second agent's judgement of the commits. It had no part in them, and saw the issue, the change and what the
// checks said. Its words are hostile; they are bounded and cleaned.
type Review struct {
	Tip      string    `json:"tip"`    // the commits that were reviewed
	Change   string    `json:"change"` // digest of what they change: a rebase may leave it as it is
	Agent    string    `json:"agent"`
	Round    int       `json:"round"`    // 1 is the run's first review
	Accepted bool      `json:"accepted"` // without a finding that matters, and Solved and Tested
	Solved   bool      `json:"solved"`   // the issue is fully solved
	Tested   bool      `json:"tested"`   // the tests test it
	Findings []Finding `json:"findings,omitempty"`
	Failed   string    `json:"failed,omitempty"` // why there is no answer, and so no acceptance; empty: there is one
}

// ReviewSpend is what all reviews of a run have used, with those that were cut short. It is part of the run's usage.
type ReviewSpend struct {
	Usage  agents.Usage `json:"usage,omitzero"`
	Unseen agents.Usage `json:"unseen,omitzero"` // the part of it that only the reviewer reports
}

// Finding is one thing that a reviewer found.
type Finding struct {
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"` // 0: none
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
}

// Severity is how much a finding matters. It is a closed set.
type Severity string

const (
	SeverityCritical Severity = "critical"
	SeverityMajor    Severity = "major"
	SeverityMinor    Severity = "minor" // no obstacle
)

// Severities lists every severity, the gravest first.
func Severities() []Severity { return []Severity{SeverityCritical, SeverityMajor, SeverityMinor} }

// Gravest are the findings, the gravest first.
func (r *Review) Gravest() []Finding {
	return slices.SortedStableFunc(slices.Values(r.Findings), func(a, b Finding) int {
		return slices.Index(Severities(), a.Severity) - slices.Index(Severities(), b.Severity)
	})
}

// Refused reports that a review was asked for and did not end with an acceptance. It may be called on nil: none was asked for.
func (r *Review) Refused() bool { return r != nil && !r.Accepted }

// Reviewing is who reviews the commits of a run; the zero value is nobody.
type Reviewing struct {
	Agent  string `json:"agent,omitempty"`  // and its model
	Rounds int    `json:"rounds,omitempty"` // how often what it finds goes back to the run's agent
}
