package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/sandboxes"
)

// The maximum time of an import, and its remaining time after the run was stopped.
const (
	importLimit        = 30 * time.Minute // an import has limits of its own
	importLimitStopped = time.Minute
)

// Run runs the loop to its end. When ctx ends, all processes are killed at once and the commits are imported with a context of
// their own; the result is EndInterrupted with context.Cause(ctx).
func Run(ctx context.Context, c Config) Result {
	r := newRunner(ctx, c)
	ctx, stop := context.WithTimeoutCause(ctx, r.c.Timers.Run, errRun)
	defer stop()
	s := r.run(ctx)
	if r.importPending && s.end != EndImport {
		if err := r.importWork(ctx, len(r.res.Iterations)); err != nil {
			s = step{end: EndImport, err: errors.Join(err, s.err)}
		}
	}
	r.countUsageOutside()
	r.res.End = s.end
	if s.err != nil {
		r.res.Err = oneLineError{s.err}
	}
	return r.res
}

// oneLineError is an error with a message of one line.
type oneLineError struct{ error }

func (f oneLineError) Error() string { return strings.ReplaceAll(f.error.Error(), "\n", "; ") }
func (f oneLineError) Unwrap() error { return f.error }

// step is the next step: an end with its cause, or another iteration with feedback.
type step struct {
	end      End
	err      error
	feedback string
}

// runner is the state of one Run. Other goroutines use only its warn method and its observer.
type runner struct {
	c          Config
	observe    *observer
	abortCause func() error // why the run was stopped from outside; nil: it was not

	importPending bool   // something ran in the sandbox since the last import
	lastFailure   string // kind of the last iteration's failure; empty: none
	gatedInTurn   bool
	prompt        string       // SHA-256 of the latest prompt
	lastFeedback  string       // feedback of the latest iteration; during the first one of a later agent that of the agent before
	agentStart    int          // first iteration of the current agent
	agentUsage    agents.Usage // usage of the current agent
	countedUsage  agents.Usage // part of the meter's usage that is in res already
	lastSession   lastSession  // session of the last iteration
	sessionUsage  agents.Usage // usage that the agent has reported for that session

	mu  sync.Mutex
	res Result // Warnings guarded by mu; the rest belongs to Run's goroutine
}

func newRunner(ctx context.Context, c Config) *runner {
	c = c.withDefaults()
	return &runner{
		c: c, agentStart: 1,
		observe: &observer{fn: c.Observe},
		res: Result{Work: c.EarlierWork, Limits: Limits{
			MaxIterations: c.MaxIterations, NoProgress: c.NoProgress, Budget: c.Budget, Timers: c.Timers,
		}},
		abortCause: func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			select {
			case <-c.Interrupt:
				return ErrInterrupted
			default:
				return nil
			}
		},
	}
}

func (r *runner) warn(text string) {
	r.mu.Lock()
	r.res.Warnings = append(r.res.Warnings, text)
	r.mu.Unlock()
	r.observe.emit(Event{Kind: EventWarning, Text: neutral.Shorten(text, eventText)})
}

func (r *runner) run(ctx context.Context) step {
	if err := errors.Join(r.c.checkRequired(), r.c.Validate()); err != nil {
		return step{end: EndPrompt, err: err}
	}
	for _, key := range r.c.Prompt.Unused() {
		r.warn(fmt.Sprintf("prompt argument %s is not used in the prompt", key))
	}
	if r.c.Meter != nil {
		r.c.Meter.Limit(r.c.Budget)
	}
	if s := r.setup(ctx); s.end != "" {
		return s
	}
	feedback := r.c.Feedback
	for n := 1; ; n++ {
		s := r.turn(ctx, n, feedback)
		if s.end != "" {
			return s
		}
		feedback = s.feedback
	}
}

// setup runs the setup commands.
func (r *runner) setup(ctx context.Context) step {
	if len(r.c.Setup) == 0 {
		return step{}
	}
	r.importPending = true
	var err error
	if r.res.Setup, err = r.checks(ctx, EventSetup, 0, "setup", r.c.Setup); err != nil {
		return r.endBroken(ctx, err)
	}
	if !AllPassed(r.res.Setup) {
		return step{end: EndSetup}
	}
	return step{}
}

// turn is one iteration: prompt, agent, import, decision.
func (r *runner) turn(ctx context.Context, n int, feedback string) step {
	if s := r.endIfStopped(ctx); s.end != "" {
		return s
	}
	r.gatedInTurn = false
	if n == 1 || n != r.agentStart {
		r.lastFeedback = feedback
	}
	r.countUsageOutside()
	sessionID := r.sessionToResume()
	text := fmt.Sprintf("iteration %d of %d", n, r.c.MaxIterations)
	if r.agentStart > 1 {
		text += ", " + r.choice().String()
	}
	if sessionID != "" {
		text += ", in the session of the previous one"
	}
	r.observe.emit(Event{Kind: EventIteration, Iteration: n, Text: text})
	t, err := r.runAgent(ctx, n, feedback, sessionID)
	if err != nil {
		if s := r.endIfStopped(ctx); s.end != "" {
			return s
		}
		return step{end: EndPrompt, err: err}
	}
	t.Prompt = r.prompt
	if _, asks := taggedAnswer(t.message, tagQuestion); t.Signal != "" && t.Failure == nil && !asks {
		r.observe.emit(Event{Kind: EventSaid, Iteration: n})
	}
	err = r.importWork(ctx, n)
	if err == nil {
		t.Commits = r.res.Work.New
	}
	r.record(t)
	if err != nil {
		return step{end: EndImport, err: err}
	}
	return r.decide(ctx, t)
}

func (r *runner) record(t turn) {
	it := t.Iteration
	r.res.Iterations = append(r.res.Iterations, it)
	r.res.Usage, r.res.Unmetered, r.agentUsage = r.res.Usage.Add(it.Usage), r.res.Unmetered.Add(it.Unmetered), r.agentUsage.Add(it.Usage)
	r.res.Signal, r.res.Message, r.res.Failure, r.res.Denied = it.Signal, t.message, it.Failure, it.Denied
	r.res.IterationsWithoutCommit++
	if it.Commits > 0 {
		r.res.IterationsWithoutCommit = 0
	}
	r.observe.emit(Event{Kind: EventEnded, Iteration: it.Number, Text: string(it.Ending), Result: &it, Used: r.res.Usage})
}

// importWork imports the commits. Every end needs the import, so a stop does not cancel it, but only shortens its time.
func (r *runner) importWork(ctx context.Context, n int) error {
	limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), importLimit, errImport)
	defer cancel()
	importCtx, cancelImport := context.WithCancelCause(limited)
	defer cancelImport(nil)
	stop := context.AfterFunc(ctx, func() {
		if retry.Sleep(importCtx, importLimitStopped) == nil {
			cancelImport(errImport)
		}
	})
	defer stop()
	work, err := r.c.Import(importCtx)
	if err != nil {
		return fmt.Errorf("import the commits: %w", err)
	}
	r.importPending = false
	r.res.Work = work
	if work.New > 0 {
		r.observe.emit(Event{Kind: EventCommits, Iteration: n, New: work.New})
	}
	return nil
}

// endIfStopped ends a run that was stopped from outside or has run out of time.
func (r *runner) endIfStopped(ctx context.Context) step {
	if err := r.abortCause(); err != nil {
		return step{end: EndInterrupted, err: err}
	}
	if ctx.Err() != nil {
		return step{end: EndTimeout}
	}
	return step{}
}

// endBroken ends a run after an error of the sandbox, whose cause is often only that the run was stopped.
func (r *runner) endBroken(ctx context.Context, err error) step {
	if s := r.endIfStopped(ctx); s.end != "" {
		return s
	}
	if errors.Is(err, sandboxes.ErrKilledInside) && len(r.res.Iterations) > 0 {
		return step{end: EndKilled, err: err}
	}
	return step{end: EndSandbox, err: err}
}
