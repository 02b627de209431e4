// Package judge has a second agent review the commits of a run, before anybody sees them.
//
// The reviewer had no part in the work. It gets the approved issue, the change and the results of the checks, in its own sandbox
// over a checkout of the change. It gets nothing that the run's agent wrote outside the change, not even commit messages. Its
// answer is data and is decoded strictly: a reviewer that hangs, fails or answers anything else has not accepted.
//
// Package pool/run uses it once the gate has passed. It collects facts for decide.Verdict, and feedback for the next iteration;
// it decides no outcome.
package judge

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/feedback"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Work describes the run to review.
type Work struct {
	Run      journal.Run
	Issue    tracker.Issue // as it was approved
	Base     worktree.Base
	Env      []string                       // environment of every command
	Budget   loop.Budget                    // of the whole run
	Estimate func(agents.Agent) loop.Budget // see loop.Config
	Price    func(agents.Agent, string, agents.Usage) agents.Usage
	Watched  func(agents.Agent) bool // see loop.Config
	Asked    context.Context         // its end asks the reviewer to end
	Stream   func(name string) (io.WriteCloser, error)
	Refused  func(egress.Event)
	Emit     func(journal.Event)
	// Spent receives the whole run's usage so far, in an event of the loop.
	Spent func(loop.Event)
	Save  func() // stores the state
}

// Judge reviews commits. It is safe for concurrent use.
type Judge struct{ Spaces *workspace.Config }

// Review has the commits of a run reviewed, if the settings ask for that and it has not been done, and notes the result in the
// facts. advice is feedback for the run's agent; empty: the agent has nothing to do. A reviewer that fails is a fact, too. err
// means that the run was asked to end meanwhile, or that git or the sandbox failed.
func (j *Judge) Review(ctx context.Context, w Work, s *journal.State) (advice string, err error) {
	f, asked := &s.Facts, w.Run.Settings.Review
	if asked.Agent == "" || w.Run.Kind != journal.KindIssue || w.Run.Settings.Attended || s.Commits == 0 || f.Unchanged {
		return "", nil
	}
	c, err := read(ctx, j.Spaces.Repo, w.Base.Commit, s.Tip)
	if err != nil || c.diff == "" {
		return "", err
	}
	next := journal.Review{Tip: s.Tip, Change: c.digest, Agent: asked.Agent, Round: 1}
	if last := f.Review; last != nil && last.Change == c.digest {
		next = *last
		next.Tip = s.Tip // with the same change
	} else {
		if last != nil {
			next.Round = last.Round + 1
		}
		if err := j.ask(ctx, w, s.Tries, f, c, &next); err != nil {
			return "", err
		}
	}
	f.Review = &next
	w.Save()
	if next.Accepted || next.Failed != "" || next.Round > asked.Rounds {
		return "", nil
	}
	return j.Spaces.Secrets.Clean(adviceOn(&next)), nil
}

// ask fills in the reviewer's answer, and notes its usage in the facts. A sandbox that fails is an error, unless that was tried
// often enough.
func (j *Judge) ask(ctx context.Context, w Work, tries int, f *journal.Facts, c change, r *journal.Review) error {
	before := *f
	if r.Failed = j.obstacle(w, before); r.Failed != "" {
		return nil
	}
	r.Agent = j.Spaces.Reviewer.Choice().String()
	w.Emit(journal.Event{Kind: journal.EventReview, Text: r.Agent + " reviews the change"})
	commit, err := c.commit(ctx, j.Spaces.Repo.Git())
	if err != nil {
		return err
	}
	base := w.Base
	base.Commit = commit
	var res loop.Result
	notices, err := j.Spaces.Visit(ctx, workspace.Checkout{
		Run:     w.Run.ID,
		Name:    "review",
		Key:     w.Run.Key,
		Base:    base,
		From:    w.Base.Commit,
		Env:     w.Env,
		Refused: w.Refused,
		Asked:   w.Asked,
	}, func(ctx context.Context, space *workspace.Workspace) error {
		res = loop.Run(ctx, j.loop(w, before, c, r.Round, space))
		space.Gateway.RestoreAddresses(res.Failure)
		return nil
	})
	for _, n := range notices {
		w.Emit(journal.Event{Kind: journal.EventWarning, Text: "review: " + n.Text, Subject: n.Subject})
	}
	spend := &f.ReviewSpend
	spend.Usage, spend.Unseen, f.Usage = spend.Usage.Add(res.Usage), spend.Unseen.Add(res.Unmetered), f.Usage.Add(res.Unmetered)
	j.Spaces.Count(w.Run.ID, res.Usage, res.Unmetered)
	emit := func(text string) {
		e := journal.Event{Kind: journal.EventReview, Text: r.Agent + ": " + text}
		if res.Usage != (agents.Usage{}) { // the reviewer was started
			e.Usage = &res.Usage
		}
		w.Emit(e)
	}
	switch {
	case ctx.Err() != nil:
		emit("cut short")
		return context.Cause(ctx)
	case res.End == loop.EndInterrupted, err != nil && w.Asked.Err() != nil:
		emit("interrupted")
		return cmp.Or(res.Err, err)
	case tries+1 < decide.MaxTries && (errors.Is(res.Err, sandboxes.ErrUnavailable) || err != nil && !lacksLogin(err)): // not the reviewer's failure
		emit("put off")
		return cmp.Or(res.Err, err)
	case err != nil:
		r.Failed = oneLine(err.Error(), textLimit)
	default:
		noteAnswer(r, res)
	}
	emit(report.Review(r))
	return nil
}

func lacksLogin(err error) bool {
	_, ok := errors.AsType[*gateway.AgentError](err)
	return ok
}

// obstacle returns the reason why the reviewer cannot be asked; empty: it can.
func (j *Judge) obstacle(w Work, f journal.Facts) string {
	switch {
	case j.Spaces.Reviewer.Agent == nil:
		return "no reviewer is configured any more"
	case w.Run.Hash != "" && w.Issue.Hash() != w.Run.Hash: // such as after a crash
		return "the issue has changed since the run began"
	case w.Budget.Exhausted(f.Usage):
		return "the budget is spent"
	}
	return ""
}

// loop returns the reviewer's only iteration.
func (j *Judge) loop(w Work, f journal.Facts, c change, round int, space *workspace.Workspace) loop.Config {
	tag := "review-" + strings.ToLower(rand.Text()) // nobody who wrote the change can answer in the reviewer's place
	facts, _ := feedback.PromptFacts(w.Issue, w.Run)
	return loop.Config{
		Agent: j.Spaces.Reviewer.Agent, Options: space.Gateway.Agents[0].Options, Sandbox: space.Sandbox,
		Prompt: prompt.Prompt{Inline: j.Spaces.Secrets.Clean(promptFor(w.Issue, w.Run, f, c, tag)), Builtin: facts},
		Output: &loop.Output{Tag: tag, Schema: schema()},
		Import: func(context.Context) (loop.Work, error) { return loop.Work{}, nil }, WithoutCommits: true,
		MaxIterations: 1, Timers: j.Spaces.Timers, Budget: w.Budget.Remaining(f.Usage), Estimate: w.Estimate, Price: w.Price, Watched: w.Watched,
		Meter: space.Meter, Interrupt: w.Asked.Done(),
		Stream: func(name string) (io.WriteCloser, error) { return w.Stream(fmt.Sprintf("review-%d-%s", round, name)) },
		Observe: func(e loop.Event) {
			if e.Kind == loop.EventSpent || e.Kind == loop.EventEnded {
				if e.Result != nil {
					e.Used = e.Used.Minus(e.Result.Unmetered)
				}
				e.Used, e.Result = f.Usage.Add(e.Used), nil // the run's iterations do not include it
				w.Spent(e)
			}
		},
	}
}

// noteAnswer notes how the reviewer ended: with an answer, or without one.
func noteAnswer(r *journal.Review, res loop.Result) {
	switch {
	case res.End == loop.EndDone && res.Output != nil && res.Output.JSON != nil:
		a, err := decode(res.Output.JSON)
		if err != nil {
			r.Failed = "the reviewer's answer is not valid: " + err.Error()
			return
		}
		r.Accepted, r.Solved, r.Tested, r.Findings = a.accepts(), *a.Solved, *a.Tested, a.Findings
	case res.End == loop.EndOutput && res.Output != nil && res.Output.Raw != "":
		r.Failed = "the reviewer's answer does not have the requested form"
	case res.End == loop.EndOutput:
		r.Failed = "the reviewer gave no answer"
	case res.End == loop.EndBudget:
		r.Failed = "the budget was used up before the reviewer answered"
	case res.Failure != nil:
		r.Failed = oneLine(report.Failure(res.Failure), textLimit)
	case res.Err != nil:
		r.Failed = oneLine(res.Err.Error(), textLimit)
	default:
		r.Failed = string(res.End)
	}
}
