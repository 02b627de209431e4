package loop

import (
	"errors"
	"fmt"
	"time"
)

// Timers are the loop's limits; zero values mean the defaults in the comments.
type Timers struct {
	Idle         time.Duration // 10 min without a byte on stdout or stderr
	IdleWarning  time.Duration // 1 min between warnings
	Grace        time.Duration // 60 s of silence after the completion signal
	GraceCap     time.Duration // 5 min in all after the completion signal
	Iteration    time.Duration // 1 h
	Run          time.Duration // 4 h
	Interrupt    time.Duration // 10 s between asking a command to end and killing it
	Command      time.Duration // 15 min for one gate or setup command
	PromptExpand time.Duration // 30 s for one command in a prompt
}

// Causes of a cancelled context: why a process was killed.
var (
	errIdle      = errors.New("idle timeout")
	errGrace     = errors.New("completion grace is over")
	errIteration = errors.New("iteration timeout")
	errRun       = errors.New("run timeout")
	errBudget    = errors.New("budget spent")
	errShare     = errors.New("budget of the iteration spent")
	errAgent     = errors.New("budget of the agent spent")
	errCommand   = errors.New("command timeout")
)

// ErrInterrupted is the Result's Err after Config.Interrupt was closed.
var ErrInterrupted = errors.New("interrupted")

func (t Timers) withDefaults() Timers {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&t.Idle, 10 * time.Minute},
		{&t.IdleWarning, time.Minute},
		{&t.Grace, time.Minute},
		{&t.GraceCap, 5 * time.Minute},
		{&t.Iteration, time.Hour},
		{&t.Run, 4 * time.Hour},
		{&t.Interrupt, 10 * time.Second},
		{&t.Command, 15 * time.Minute},
		{&t.PromptExpand, 30 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return t
}

func (t Timers) validate() error {
	for _, d := range []time.Duration{
		t.Idle, t.IdleWarning, t.Grace, t.GraceCap, t.Iteration, t.Run, t.Interrupt, t.Command, t.PromptExpand,
	} {
		if d < 0 {
			return fmt.Errorf("a timeout is %s; it must not be negative", d)
		}
	}
	return nil
}

// pulse is the state that the timers of an iteration read.
type pulse struct {
	last   time.Time // when the last byte came; at first the start
	signal time.Time // since when the completion signal stands; zero: it does not
	warned time.Time // when the last warning was given
}

// check says, at now, whether the process has to be killed (and why), whether a warning is due, and when to look again.
//
//nolint:revive,staticcheck // kill is an answer, not this function's error
func (t Timers) check(p pulse, now time.Time) (kill error, warn bool, next time.Time) {
	if !p.signal.IsZero() {
		end := later(p.last, p.signal).Add(t.Grace)
		if limit := p.signal.Add(t.GraceCap); limit.Before(end) {
			end = limit
		}
		if !now.Before(end) {
			return errGrace, false, end
		}
		return nil, false, end
	}
	end := p.last.Add(t.Idle)
	if !now.Before(end) {
		return errIdle, false, end
	}
	next = later(p.last, p.warned).Add(t.IdleWarning)
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
