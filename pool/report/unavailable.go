package report

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// UnavailableError means that the agents, their sandbox or the gate cannot be used now.
type UnavailableError struct {
	Agents  []agents.Choice
	Key     string // the issue whose run found it out earlier; may be empty
	Reason  journal.Reason
	Failure *agents.Failure // of the agent; nil: it is about something else
	Until   time.Time       // when it is expected to be available; zero if unknown
	Cause   error           // why the sandbox did not open; nil for anything else
}

// AllParked is why no agent of the list can be used; nil if one can. waiting has those that cannot, the first that is expected back
// first. If no time is known it is nil, too: a run finds out.
func AllParked(list []agents.Choice, waiting []journal.Parked) error {
	if len(waiting) < len(list) || waiting[0].Until.IsZero() {
		return nil
	}
	first := waiting[0]
	return &UnavailableError{
		Agents: list,
		Key:    first.Key,
		Until:  first.Until,
		Reason: journal.Reason{Code: journal.ReasonLoop, Detail: string(first.Class)},
	}
}

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

func (e *UnavailableError) Error() string {
	if e.Reason.Code == journal.ReasonOpen || e.Reason.Code == journal.ReasonMachine {
		return e.Reason.Detail
	}
	return fmt.Sprintf("%s: %s", Unavailable(e.Agents), e.Reason.Detail)
}
