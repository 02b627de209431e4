package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

// act runs the iteration's agent: in the session of the last iteration if that saves tokens, otherwise with the whole prompt. An
// agent notices a lost session before it sends a request to its model; then act repeats the iteration with the whole prompt.
func (r *runner) act(ctx context.Context, n int, feedback, resumed string) (turn, error) {
	inv, err := r.invocation(ctx, n, feedback, resumed)
	if err != nil {
		return turn{}, err
	}
	r.pending = true
	t := r.iterate(ctx, n, inv, resumed)
	switch {
	case resumed == "":
	case t.lost():
		r.c.Resume = ResumeNever
		r.warn(fmt.Sprintf("iteration %d: the session was not resumed (%s); the agent begins afresh", n, t.Failure.Message))
		return r.act(ctx, n, feedback, "")
	case t.Failure == nil && t.Session != resumed:
		r.c.Resume = ResumeNever
		r.warn(fmt.Sprintf("iteration %d: the agent went on in another session than the one named; later iterations begin afresh", n))
	}
	r.last = lastSession{
		ID:      t.Session,
		Agent:   t.Agent,
		Model:   t.Model,
		Intact:  t.Ending == EndingExit && t.Failure == nil,
		Context: t.context,
		Ended:   t.Ended,
	}
	r.total = t.total
	return t, nil
}

// resumes returns the session that the agent resumes; empty: it starts with the whole prompt. A prompt without {{feedback}} is
// always sent whole, because that is what the user wants.
func (r *runner) resumes() string {
	id := r.c.Resume.session(r.last, r.choice().Agent, r.choice().Model, time.Now())
	if !r.c.Agent.Describe().Resumes(id) || !r.c.Prompt.Uses("feedback") {
		return ""
	}
	return id
}

// lost reports whether the agent could not resume its session: it failed before it did or used anything, and not because its
// service or its program is missing.
func (t turn) lost() bool {
	f := t.Failure
	return t.Ending == EndingExit && f != nil && !f.Class.Unavailable() && f.Class != agents.NotStarted && f.Class != agents.Killed &&
		!t.acted && t.Usage == (agents.Usage{})
}

// account records the agent's usage in this iteration, and the context that its session has now.
func (r *runner) account(t *turn, report agents.Report, metered agents.Usage, resumed string) {
	var before agents.Usage // of the session, since some agents report its total
	if resumed != "" && report.Session == resumed {
		before = r.total
	}
	spent := report.Spent(before)
	var passed Passed
	if r.c.Meter != nil {
		passed = r.c.Meter.Passed()
	}
	if !passed.Answers && spent.CostUSD == 0 && spent.Tokens() > 0 && r.c.Price != nil {
		spent = r.c.Price(r.c.Agent, cmp.Or(report.Model, t.Model), spent)
		t.estimated = spent.Estimated > 0
	}
	t.Resumed, t.total, t.Usage = resumed != "", report.Usage, spent.Larger(metered)
	if spent.CostUSD > 0 { // the cost of all tokens is known
		t.Usage.Unpriced = 0
	}
	if passed.Answers {
		t.Unseen = t.Usage.Less(metered)
		if passed.Unpriced { // then only the agent knows the cost
			t.Unseen.CostUSD = 0
		}
	}
	r.estimate(t, passed.Answers)
	t.Free = passed.Free && t.Failure != nil && t.Usage == (agents.Usage{})
	t.context = cmp.Or(report.Context, passed.Largest, report.Usage.Tokens()+report.Usage.CacheRead)
}
