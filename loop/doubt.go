package loop

import (
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
	latest := t.Ended.UTC().Truncate(time.Second).Add(maxWait)
	if passed.LimitEnd.After(latest) {
		latest = passed.LimitEnd
	}
	if f.ResetAt.After(latest) {
		f.ResetAt = latest
	}
}
