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
	Key     string // the issue whose run found it earlier; may be empty
	Reason  journal.Reason
	Failure *agents.Failure // failure of the agent; nil: the cause is not the agent
	Until   time.Time       // expected end of the unavailability; zero if unknown
	Cause   error           // why the sandbox did not open; otherwise nil
}

// AllParked returns an error if no agent of the list can be used. waiting lists the unavailable ones, earliest return
// first. It also returns nil if no time of return is known: then a run has to find out.
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

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

func (e *UnavailableError) Error() string {
	if e.Reason.Code == journal.ReasonOpen || e.Reason.Code == journal.ReasonMachine {
		return e.Reason.Detail
	}
	return fmt.Sprintf("%s: %s", Unavailable(e.Agents), e.Reason.Detail)
}
