package loop

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Timers are the loop's timeouts; zero values mean the defaults in the comments.
type Timers struct {
	Idle         time.Duration // 10 min without a byte on stdout or stderr
	IdleWarning  time.Duration // 1 min between warnings
	Grace        time.Duration // 60 s of silence after the completion signal
	GraceCap     time.Duration // 5 min in total after the completion signal
	Iteration    time.Duration // 1 h
	Run          time.Duration // 4 h
	Interrupt    time.Duration // 10 s between asking a command to end and killing it
	Command      time.Duration // 15 min for one gate or setup command
	PromptExpand time.Duration // 30 s for one command in a prompt
}

// killCause is the reason why a process was killed: the cause of its cancelled context.
type killCause struct {
	ending Ending
	text   string
}

func (c killCause) Error() string { return c.text }

var (
	errIdle      error = killCause{EndingIdle, "idle timeout"}
	errGrace     error = killCause{EndingGrace, "completion grace is over"}
	errIteration error = killCause{EndingIteration, "iteration timeout"}
	errRun       error = killCause{EndingRun, "run timeout"}
	errBudget    error = killCause{EndingBudget, "budget spent"}
	errShare     error = killCause{EndingIterationBudget, "budget of the iteration spent"}
	errAgent     error = killCause{EndingAgentBudget, "budget of the agent spent"}
	errCommand         = errors.New("command timeout")
	errImport          = errors.New("import timeout")
)

// ErrInterrupted is the Result's Err after Config.Interrupt was closed.
var ErrInterrupted = errors.New("interrupted")

// each calls f with every timer and its default.
func (t *Timers) each(f func(value *time.Duration, usual time.Duration)) {
	f(&t.Idle, 10*time.Minute)
	f(&t.IdleWarning, time.Minute)
	f(&t.Grace, time.Minute)
	f(&t.GraceCap, 5*time.Minute)
	f(&t.Iteration, time.Hour)
	f(&t.Run, 4*time.Hour)
	f(&t.Interrupt, 10*time.Second)
	f(&t.Command, 15*time.Minute)
	f(&t.PromptExpand, 30*time.Second)
}

func (t Timers) withDefaults() Timers {
	t.each(func(value *time.Duration, usual time.Duration) { *value = cmp.Or(*value, usual) })
	return t
}

func (t Timers) validate() (err error) {
	t.each(func(value *time.Duration, _ time.Duration) {
		if *value < 0 {
			err = fmt.Errorf("a timeout is %s; it must not be negative", *value)
		}
	})
	return err
}

// activity is the state on which an iteration's timers depend.
type activity struct {
	lastByte time.Time // time of the last byte; initially the start
	signalAt time.Time // time of the completion signal; zero: there is none
	warnedAt time.Time // time of the last warning
}

// check returns whether at now the process must be killed (and why), whether a warning is due, and when to check again.
//
//nolint:revive,staticcheck // kill is an answer, not this function's error
func (t Timers) check(p activity, now time.Time) (kill error, warn bool, next time.Time) {
	if !p.signalAt.IsZero() {
		end := later(p.lastByte, p.signalAt).Add(t.Grace)
		if limit := p.signalAt.Add(t.GraceCap); limit.Before(end) {
			end = limit
		}
		if !now.Before(end) {
			return errGrace, false, end
		}
		return nil, false, end
	}
	end := p.lastByte.Add(t.Idle)
	if !now.Before(end) {
		return errIdle, false, end
	}
	next = later(p.lastByte, p.warnedAt).Add(t.IdleWarning)
	if !now.Before(next) {
		warn, next = true, now.Add(t.IdleWarning)
	}
	if end.Before(next) {
		next = end
	}
	return nil, warn, next
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
