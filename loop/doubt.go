package loop

import (
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
)

// maxWait is the longest wait for an agent whose service has not stated to ralph how long it is unavailable.
const maxWait = time.Hour

// doubt corrects a failure that would make the agent unavailable for all issues. What an agent prints may come from a command that
// it runs, so only what ralph has seen counts; without that, the wait is short.
func (r *runner) doubt(t *turn, passed MeteredRequests) {
	f := t.Failure
	if f == nil || !f.Class.Unavailable() {
		return
	}
	if r.c.Meter != nil && r.c.Watched != nil && r.c.Watched(r.c.Agent) && !passed.Refused {
		f.Class, f.ResetAt = agents.OtherFailure, time.Time{}
		f.Message = neutral.Excerpt("no refusal by the model service was seen, although the agent says: "+f.Message, 500)
		return
	}
	r.explainUnreachable(f, passed)
	latest := t.Ended.UTC().Truncate(time.Second).Add(maxWait)
	if passed.LimitEnd.After(latest) {
		latest = passed.LimitEnd
	}
	if f.ResetAt.After(latest) {
		f.ResetAt = latest
	}
}

// explainUnreachable makes a failure say that the service cannot be reached, and where its address is from. Agents only know the
// address of ralph's proxy, and take its answer for that of a failing service.
func (r *runner) explainUnreachable(f *agents.Failure, passed MeteredRequests) {
	o := r.c.Options
	f.Address = o.Address
	switch {
	case passed.Unreached != "":
		f.Class, f.ResetAt, f.Message = agents.Unreachable, time.Time{}, "the model service at "+passed.Unreached
	case passed.Refused && f.Class == agents.Unreachable: // it has answered
		f.Class = agents.Overload
	}
	if f.Class == agents.Unreachable && o.AddressFrom != "" {
		f.Message = neutral.Excerpt(fmt.Sprintf("%s; %s sets its address, %s", f.Message, o.AddressFrom, o.Address), 500)
	}
}
