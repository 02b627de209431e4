package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// How long a hand-back may take, and how much of that is left once the run has been stopped.
const (
	handBackLimit        = 10 * time.Minute
	handBackLimitStopped = time.Minute
)

// Run runs the loop to its end. When ctx ends, everything is killed at once and what can still be taken back is, with
// a context of its own; the result is EndInterrupted with context.Cause(ctx).
func Run(ctx context.Context, c Config) Result {
	r := newRunner(ctx, c)
	ctx, stop := context.WithTimeoutCause(ctx, r.c.Timers.Run, errRun)
	defer stop()
	r.res.End, r.res.Err = r.run(ctx)
	if r.unsafe && r.res.End != EndHandBack {
		if err := r.handBack(ctx, len(r.res.Iterations)); err != nil {
			r.res.End, r.res.Err = EndHandBack, fmt.Errorf("%w (after: %w)", err, r.res.Err)
		}
	}
	return r.res
}

// runner is one Run. Only its warn method and its observer are used from other goroutines.
type runner struct {
	c       Config
	observe *observer
	aborted func() error // why the run was stopped from outside; nil: it was not

	unsafe      bool // something ran in the sandbox since the last hand-back
	fruitless   int  // iterations in a row without a new commit
	failed      string
	gatedInTurn bool

	mu  sync.Mutex
	res Result // Warnings guarded by mu; the rest belongs to Run's goroutine
}

func newRunner(ctx context.Context, c Config) *runner {
	c = c.withDefaults()
	return &runner{
		c:       c,
		observe: &observer{fn: c.Observe},
		res:     Result{Work: c.Before},
		aborted: func() error {
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
	r.observe.emit(Event{Kind: EventWarning, Text: cut(text, eventText)})
}

func (r *runner) run(ctx context.Context) (End, error) {
	if r.c.Agent == nil || r.c.Sandbox == nil || r.c.HandBack == nil {
		return EndSandbox, errors.New("loop: Agent, Sandbox and HandBack are required")
	}
	if err := r.c.Validate(); err != nil {
		return EndPrompt, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	for _, key := range r.c.Prompt.Unused() {
		r.warn(fmt.Sprintf("prompt argument %s is not used in the prompt", key))
	}
	if end, err := r.setup(ctx); end != "" {
		return end, err
	}
	feedback := r.c.Feedback
	for n := 1; ; n++ {
		next, err := r.turn(ctx, n, feedback)
		if next.end != "" {
			return next.end, err
		}
		feedback = next.feedback
	}
}

// setup runs the setup commands. An empty End means that the iterations may start.
func (r *runner) setup(ctx context.Context) (End, error) {
	for i, cmd := range r.c.Setup {
		r.unsafe = true
		check, err := r.check(ctx, EventSetup, 0, fmt.Sprintf("setup-%d.log", i+1), cmd)
		if err != nil {
			return r.broken(ctx, fmt.Errorf("setup `%s`: %w", oneLine(cmd.Line, 100), err))
		}
		if !check.Passed() {
			return EndSetup, fmt.Errorf("setup `%s` %s: %s", oneLine(cmd.Line, 100), outcome(check), lastWords(check.Tail))
		}
	}
	return "", nil
}

// turn is one iteration: prompt, agent, hand-back, decision.
func (r *runner) turn(ctx context.Context, n int, feedback string) (step, error) {
	if end, err := r.stopped(ctx); end != "" {
		return step{end: end}, err
	}
	r.gatedInTurn = false
	r.observe.emit(Event{Kind: EventIteration, Iteration: n, Text: fmt.Sprintf("iteration %d of %d", n, r.c.MaxIterations)})
	inv, err := r.invocation(ctx, n, feedback)
	if err != nil {
		if end, why := r.stopped(ctx); end != "" {
			return step{end: end}, why
		}
		return step{end: EndPrompt}, err
	}
	r.unsafe = true
	t := r.iterate(ctx, n, inv)
	err = r.handBack(ctx, n)
	if err == nil {
		t.Commits = r.res.Work.New
	}
	r.record(t)
	if err != nil {
		return step{end: EndHandBack}, err
	}
	return r.judge(ctx, t)
}

func (r *runner) record(t turn) {
	r.res.Iterations = append(r.res.Iterations, t.Iteration)
	r.res.Usage = r.res.Usage.Add(t.Usage)
	r.res.Signal, r.res.Message, r.res.Failure = t.Signal, t.message, t.Failure
	r.fruitless++
	if t.Commits > 0 {
		r.fruitless = 0
	}
	it := t.Iteration
	r.observe.emit(Event{Kind: EventEnded, Iteration: it.Number, Text: it.Ending, Result: &it})
}

// handBack takes the commits back. It is what a stop of the run has to do next anyway, so a stop does not cancel it; it
// only shortens the time it may take.
func (r *runner) handBack(ctx context.Context, n int) error {
	took, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), handBackLimit, errCommand)
	defer cancel()
	hurried, hurry := context.WithCancelCause(took)
	defer hurry(nil)
	stop := context.AfterFunc(ctx, func() {
		late := time.NewTimer(handBackLimitStopped)
		defer late.Stop()
		select {
		case <-late.C:
			hurry(errCommand)
		case <-hurried.Done():
		}
	})
	defer stop()
	work, err := r.c.HandBack(hurried)
	if err != nil {
		return fmt.Errorf("take the commits back: %w", err)
	}
	r.unsafe = false
	r.res.Work = work
	if work.New > 0 {
		r.observe.emit(Event{Kind: EventCommits, Iteration: n, New: work.New})
	}
	return nil
}

// stopped says whether the run was stopped from outside or has run out of time.
func (r *runner) stopped(ctx context.Context) (End, error) {
	if err := r.aborted(); err != nil {
		return EndInterrupted, err
	}
	if ctx.Err() != nil {
		return EndTimeout, fmt.Errorf("the run took longer than %s; raise run-timeout if it needs more", r.c.Timers.Run)
	}
	return "", nil
}

// broken says what an error of the sandbox means: often only that the run was stopped.
func (r *runner) broken(ctx context.Context, err error) (End, error) {
	if end, why := r.stopped(ctx); end != "" {
		return end, why
	}
	return EndSandbox, err
}
