package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// runAgent runs the iteration's agent: in the session of the last iteration if that saves tokens, otherwise with the whole prompt. An
// agent notices a lost session before it sends a request to its model; then runAgent repeats the iteration with the whole prompt.
func (r *runner) runAgent(ctx context.Context, n int, feedback, sessionID string) (turn, error) {
	inv, err := r.invocation(ctx, n, feedback, sessionID)
	if err != nil {
		return turn{}, err
	}
	r.importPending = true
	t := r.runProcess(ctx, n, inv, sessionID)
	switch {
	case sessionID == "":
	case t.sessionLost():
		r.c.Resume = ResumeNever
		r.warn(fmt.Sprintf("iteration %d: the session was not resumed (%s); the agent starts a new one", n, t.Failure.Message))
		return r.runAgent(ctx, n, feedback, "")
	case t.Failure == nil && t.Session != sessionID:
		r.c.Resume = ResumeNever
		r.warn(fmt.Sprintf("iteration %d: the agent continued in a session other than the requested one; later iterations start new sessions", n))
	}
	r.lastSession = lastSession{
		ID:      t.Session,
		Agent:   t.Agent,
		Model:   t.Model,
		Intact:  t.Ending == EndingExit && t.Failure == nil,
		Context: t.context,
		Ended:   t.Ended,
	}
	r.sessionUsage = t.sessionUsage
	return t, nil
}

// sessionToResume returns the session that the agent resumes; empty: it starts with the whole prompt. A prompt without {{feedback}} is
// always sent whole, because that is what the user wants.
func (r *runner) sessionToResume() string {
	id := r.c.Resume.session(r.lastSession, r.choice().Agent, r.choice().Model, time.Now())
	if !r.c.Agent.Describe().CanResume(id) || !r.c.Prompt.Uses("feedback") {
		return ""
	}
	return id
}

// sessionLost reports whether the agent could not resume its session: it failed before it did or used anything, and not because its
// service or its program is missing.
func (t turn) sessionLost() bool {
	f := t.Failure
	return t.Ending == EndingExit && f != nil && !f.Class.Unavailable() && f.Class != agents.NotStarted && f.Class != agents.Killed &&
		!t.acted && t.Usage == (agents.Usage{})
}

// recordUsage records the agent's usage in this iteration, and the context that its session has now.
func (r *runner) recordUsage(t *turn, report agents.Report, metered agents.Usage, sessionID string) {
	var before agents.Usage // of the session, since some agents report its total
	if sessionID != "" && report.Session == sessionID {
		before = r.sessionUsage
	}
	spent := report.Spent(before)
	var passed MeteredRequests
	if r.c.Meter != nil {
		passed = r.c.Meter.Requests(agents.Link{Agent: r.c.Agent, Options: r.c.Options})
	}
	r.doubt(t, passed)
	if !passed.Answered && spent.CostUSD == 0 && spent.Tokens() > 0 && r.c.Price != nil {
		spent = r.c.Price(r.c.Agent, cmp.Or(report.Model, t.Model), spent)
		t.estimated = spent.Estimated > 0
	}
	t.Resumed, t.sessionUsage, t.Usage = sessionID != "", report.Usage, spent.Larger(metered)
	if spent.CostUSD > 0 { // the cost of all tokens is known
		t.Usage.Unpriced = 0
	}
	if passed.Answered {
		t.Unmetered = t.Usage.Minus(metered)
		if passed.Unpriced { // then only the agent knows the cost
			t.Unmetered.CostUSD = 0
		}
	}
	r.addEstimate(t, passed.Answered)
	notStarted := t.Failure != nil && t.Failure.Class == agents.NotStarted && !passed.Answered
	t.UsedNothing = (passed.UsedNothing || notStarted) && t.Failure != nil && t.Usage == (agents.Usage{})
	t.context = cmp.Or(report.Context, passed.LargestRequest, report.Usage.Tokens()+report.Usage.CacheRead)
}
