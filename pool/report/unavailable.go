package report

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// UnavailableError means that the agents, their sandbox or the gate cannot be used now.
type UnavailableError struct {
	Agents []agents.Choice
	Key    string // the issue whose run found it out earlier; may be empty
	Reason journal.Reason
	Until  time.Time // when it is expected to be available; zero if unknown
	Cause  error     // why the sandbox did not open; nil for anything else
}

// Unwrap gives the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

func (e *UnavailableError) Error() string {
	if e.Reason.Code == journal.ReasonOpen {
		return e.Reason.Detail
	}
	return fmt.Sprintf("%s: %s", Unavailable(e.Agents), e.Reason.Detail)
}
