package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// turn is the result of one agent process, with more facts for the decision.
type turn struct {
	Iteration
	message      string
	prose        string
	sandboxErr   error // the sandbox failed, so the process's end is unknown
	acted        bool  // the agent wrote a message or used a tool
	context      int64 // tokens in its session now; an upper limit if the agent does not say
	sessionUsage agents.Usage
	estimated    bool // its usage is an estimate
}

// execResult is the result of Sandbox.Exec.
type execResult struct {
	exit sandboxes.Exit
	err  error
}

// runProcess runs one agent process to its end, in a new or a resumed session. It returns when the whole process tree has ended.
func (r *runner) runProcess(ctx context.Context, n int, inv agents.Invocation, sessionID string) turn {
	start := time.Now()
	t := newTranscript(n, r.c, r.observe)
	out, errs := r.openSink(fmt.Sprintf("agent-%d.jsonl", n)), r.openSink(fmt.Sprintf("agent-%d.stderr", n))
	defer out.close()
	defer errs.close()

	limited, stop := context.WithTimeoutCause(ctx, r.c.Timers.Iteration, errIteration)
	defer stop()
	ctx, kill := context.WithCancelCause(limited)
	defer kill(nil)

	if r.c.Meter != nil {
		r.c.Meter.Limit(r.c.Budget.Min(r.c.Iteration.Min(r.agentBudget().Remaining(r.agentUsage)).Plus(r.countedUsage)))
		defer func() { r.c.Meter.Limit(r.c.Budget) }()
	}
	r.emitEstimate(n)
	ended := make(chan execResult, 1)
	go func() {
		exit, err := r.c.Sandbox.Exec(ctx, sandboxes.Command{
			Argv: inv.Argv, Env: inv.Env, Stdin: stdinReader(inv.Stdin),
			Stdout: t.stdoutWriter(out), Stderr: t.stderrWriter(errs),
			Interrupt: r.c.Interrupt, Grace: r.c.Timers.Interrupt,
		})
		ended <- execResult{exit, err}
	}()
	e := r.watch(ctx, t, ended, kill)
	who := r.choice()
	return r.conclude(t, e, context.Cause(ctx), sessionID, Iteration{
		Number:   n,
		Agent:    who.Agent,
		Model:    who.Model,
		Ended:    time.Now(),
		Duration: time.Since(start),
	})
}

// watch waits for the process and kills it when a timer expires. If the process has also ended by itself, its own exit counts.
func (r *runner) watch(ctx context.Context, t *transcript, ended <-chan execResult, kill context.CancelCauseFunc) execResult {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var meterChanged <-chan struct{}
	if r.c.Meter != nil {
		meterChanged = r.c.Meter.Changed()
	}
	for {
		select {
		case e := <-ended:
			return e
		case <-meterChanged:
			iterationUsage := r.uncountedUsage()
			used := r.res.Usage.Add(iterationUsage)
			spent := r.budgetSpent(ctx, used)
			if spent {
				kill(errBudget)
			} else if spent = r.c.Iteration.Exhausted(iterationUsage); spent {
				kill(errShare)
			} else if spent = r.agentBudget().Exhausted(r.agentUsage.Add(iterationUsage)); spent {
				kill(errAgent)
			}
			r.observe.emit(Event{Kind: EventSpent, Iteration: t.iteration, Used: used})
			if spent {
				return <-ended
			}
		case <-t.signalChanged:
		case <-timer.C:
		}
		cause, silent, next := t.checkTimers(r.c.Timers)
		if cause != nil {
			kill(cause)
			return <-ended
		}
		if silent > 0 {
			r.observe.emit(Event{Kind: EventWarning, Iteration: t.iteration, Text: fmt.Sprintf(
				"no output for %s; the agent is killed after %s", silent.Round(time.Second), r.c.Timers.Idle)})
		}
		timer.Reset(time.Until(next))
	}
}

// uncountedUsage returns the usage that the meter has counted since the last iteration ended.
func (r *runner) uncountedUsage() agents.Usage {
	if r.c.Meter == nil {
		return agents.Usage{}
	}
	return r.c.Meter.Used().Minus(r.countedUsage)
}

// countUsageOutside adds the usage outside of iterations, such as that of the gate or of Verify.
func (r *runner) countUsageOutside() {
	used := r.uncountedUsage()
	r.countedUsage, r.res.Usage = r.countedUsage.Add(used), r.res.Usage.Add(used)
}

// conclude determines how the process ended: a stop of the run takes precedence over the process's own exit, and that over a
// timer. cause is the reason why the process's context ended, if it did.
func (r *runner) conclude(t *transcript, e execResult, cause error, sessionID string, it Iteration) turn {
	ending := agents.Ending{ExitCode: e.exit.Code, Signal: e.exit.Signal}
	_, notStarted := errors.AsType[*sandboxes.StartError](e.err)
	var sandboxErr error
	switch {
	case e.err == nil:
		it.Ending = EndingExit
	case notStarted:
		it.Ending = EndingNotStarted
		ending.StartErr = e.err
	case cause == nil:
		it.Ending, sandboxErr = EndingSandbox, e.err
	default:
		it.Ending = endingOf(cause)
		ending = agents.Ending{ExitCode: 137, Signal: "SIGKILL"}
	}
	if r.abortCause() != nil {
		it.Ending = EndingInterrupted
	}
	report := t.finish(ending)
	metered := r.uncountedUsage()
	r.countedUsage = r.countedUsage.Add(metered)
	it.ExitCode, it.Session, it.Failure = ending.ExitCode, neutral.Shorten(report.Session, 256), report.Failure
	it.Signal, it.Denied = t.completion.signal(), report.Denied
	f := r.failure(it, ending, t.completion.endMark() != "")
	if it.Failure = nil; f != nil {
		it.Failure = &agents.Failure{Class: f.Class, Message: neutral.Excerpt(f.Message, 500), ResetAt: f.ResetAt}
		it.Stderr = proc.LastLines(t.stderr.String(), stderrLines)
	}
	finished := turn{Iteration: it, message: t.completion.message(), sandboxErr: sandboxErr, acted: t.acted}
	r.recordUsage(&finished, report, metered, sessionID)
	if t.prose != nil {
		finished.prose = t.prose.String()
	}
	return finished
}

// failure returns the failure of the iteration. A failure reported by the agent counts; being killed by ralph is a failure only if
// the agent was not done yet.
func (r *runner) failure(it Iteration, ending agents.Ending, complete bool) *agents.Failure {
	reported := it.Failure
	if reported != nil && reported.Class == agents.Killed {
		reported = nil
	}
	switch it.Ending {
	case EndingExit, EndingNotStarted:
		if it.Failure == nil && (ending.ExitCode != 0 || ending.Signal != "" || ending.StartErr != nil) {
			// The decoder may have missed the failure; the exit status is a fact.
			return &agents.Failure{Class: agents.OtherFailure, Message: fmt.Sprintf("exit status %d", ending.ExitCode)}
		}
		return it.Failure
	case EndingGrace, EndingIteration:
		if complete {
			r.warn(fmt.Sprintf("iteration %d: the agent hung after its completion signal and was killed (%s)", it.Number, it.Ending))
			return reported
		}
	case EndingInterrupted, EndingRun, EndingSandbox, EndingBudget, EndingIterationBudget, EndingAgentBudget:
		return nil // not caused by the agent
	}
	if reported != nil {
		return reported
	}
	return &agents.Failure{Class: agents.Killed, Message: r.killedMessage(it.Ending)}
}

func (r *runner) killedMessage(ending Ending) string {
	switch ending {
	case EndingIdle:
		return fmt.Sprintf("killed after %s without output", r.c.Timers.Idle)
	case EndingIteration:
		return fmt.Sprintf("killed after %s", r.c.Timers.Iteration)
	}
	return "killed because it hung after its completion signal, which it withdrew at the last moment"
}

func endingOf(err error) Ending {
	if c, ok := errors.AsType[killCause](err); ok {
		return c.ending
	}
	return EndingInterrupted
}
