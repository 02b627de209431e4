package loop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// The tests use fake time: the bubble's clock advances only when every goroutine waits.

func TestIdleTimeoutKillsAfterTenSilentMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{}
		c := fakeConfig(fakeSandbox{agent: printLines(true, 100*time.Second, "tool x", 30*time.Second, []byte("half a li"))}, d)
		c.MaxIterations = 1
		start := time.Now()
		r := Run(t.Context(), c)
		wantEnd(t, r, EndMaxIterations)
		it := wantEnding(t, r, 1, EndingIdle)
		if got, want := time.Since(start), (130+600)*time.Second; got != want {
			t.Errorf("killed after %s, want %s: 600 s after the last byte, on whichever stream", got, want)
		}
		if it.Failure == nil || it.Failure.Class != agents.Killed || it.ExitCode == 0 {
			t.Errorf("an idle timeout must fail the iteration: %+v", it)
		}
	})
}

func TestIdleWarnsEachMinuteBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &recorder{}
		c := fakeConfig(fakeSandbox{agent: printLines(true, 90*time.Second, "tool x")}, d)
		c.MaxIterations = 1
		start := time.Now()
		var at []time.Duration
		c.Observe = func(e Event) {
			if e.Kind == EventWarning {
				at = append(at, time.Since(start))
			}
		}
		wantEnd(t, Run(t.Context(), c), EndMaxIterations)
		want := []time.Duration{time.Minute} // and from 90 s on after each minute of silence, except the tenth
		for i := 1; i <= 9; i++ {
			want = append(want, 90*time.Second+time.Duration(i)*time.Minute)
		}
		if len(at) != len(want) {
			t.Fatalf("warnings at %v, want %v", at, want)
		}
		for i := range at {
			if at[i] != want[i] {
				t.Errorf("warnings at %v, want %v", at, want)
			}
		}
	})
}

func TestGraceIsResetByEachLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig(fakeSandbox{agent: printLines(true, sayDone, 50*time.Second, "tool a", 50*time.Second, "tool b")}, &recorder{})
		start := time.Now()
		r := Run(t.Context(), c)
		wantEnd(t, r, EndDone)
		wantEnding(t, r, 1, EndingGrace)
		if got, want := time.Since(start), 160*time.Second; got != want {
			t.Errorf("killed after %s, want %s", got, want)
		}
	})
}

// An agent that hangs after its question counts as done, too.
func TestGraceAfterAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for said, end := range map[string]End{
			"say 1 <needs-info>Which?</needs-info>": EndNeedsInfo, "say 1 <no-change>fine</no-change>": EndNoChange,
		} {
			c := fakeConfig(fakeSandbox{agent: printLines(true, said)}, &recorder{})
			c.Import = importCommits(0)
			r := Run(t.Context(), c)
			wantEnd(t, r, end)
			if it := wantEnding(t, r, 1, EndingGrace); it.Failure != nil || it.Signal != "" {
				t.Errorf("%+v", it)
			}
		}
	})
}

func TestGraceHasAnAbsoluteCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig(fakeSandbox{agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			_, _ = cmd.Stdout.Write([]byte(sayDone + "\n"))
			for {
				_, _ = cmd.Stdout.Write([]byte("tool still here\n"))
				if err := pause(ctx, 7*time.Second); err != nil {
					return sandboxes.Exit{}, err
				}
			}
		}}, &recorder{})
		start := time.Now()
		r := Run(t.Context(), c)
		wantEnd(t, r, EndDone)
		wantEnding(t, r, 1, EndingGrace)
		if got := time.Since(start); got != 5*time.Minute {
			t.Errorf("killed after %s, want 5 min", got)
		}
	})
}

func TestGraceEndCountsAsFinishedWithAWarning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Run(t.Context(), fakeConfig(fakeSandbox{agent: printLines(true, sayDone)}, &recorder{}))
		wantEnd(t, r, EndDone)
		if it := wantEnding(t, r, 1, EndingGrace); it.Failure != nil || it.Signal != DefaultSignal {
			t.Errorf("iteration %+v, want a signal and no failure", it)
		}
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "hung") {
			t.Errorf("warnings %q", r.Warnings)
		}
	})
}

func TestWithdrawnSignalBringsTheIdleTimeoutBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig(fakeSandbox{agent: printLines(true, sayDone, 30*time.Second, "say next wait, one more thing")}, &recorder{})
		c.MaxIterations = 1
		start := time.Now()
		r := Run(t.Context(), c)
		wantEnd(t, r, EndMaxIterations)
		wantEnding(t, r, 1, EndingIdle)
		if got, want := time.Since(start), 630*time.Second; got != want {
			t.Errorf("killed after %s, want %s", got, want)
		}
	})
}

func TestNoIdleTimeoutWhileTheSignalStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone, 30*time.Second)}, &recorder{})
		c.Timers = Timers{Idle: 10 * time.Second}
		r := Run(t.Context(), c)
		wantEnd(t, r, EndDone)
		wantEnding(t, r, 1, EndingExit)
	})
}

func printForever(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	for {
		_, _ = cmd.Stdout.Write([]byte("tool busy\n"))
		if err := pause(ctx, time.Minute); err != nil {
			return sandboxes.Exit{}, err
		}
	}
}

func TestIterationTimeoutIsAbsolute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fakeConfig(fakeSandbox{agent: printForever}, &recorder{})
		c.MaxIterations = 1
		start := time.Now()
		r := Run(t.Context(), c)
		wantEnd(t, r, EndMaxIterations)
		wantEnding(t, r, 1, EndingIteration)
		if got := time.Since(start); got != time.Hour {
			t.Errorf("killed after %s, want 1 h", got)
		}
	})
}

func TestRunTimeoutIsAbsolute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		imports := 0
		c := fakeConfig(fakeSandbox{agent: printForever}, &recorder{})
		c.Timers.Iteration = 90 * time.Minute
		c.Import = func(ctx context.Context) (Work, error) {
			imports++
			return Work{Tip: "t", Commits: imports, New: 1}, ctx.Err()
		}
		start := time.Now()
		r := Run(t.Context(), c)
		wantEnd(t, r, EndTimeout)
		wantEnding(t, r, 3, EndingRun)
		if got := time.Since(start); got != 4*time.Hour {
			t.Errorf("ended after %s, want 4 h", got)
		}
		if imports != 3 || r.Work.Commits != 3 {
			t.Errorf("%d imports, work %+v; the last one has to come after the timeout", imports, r.Work)
		}
	})
}

func TestRunTimeoutEndsSetupAndGate(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, _ sandboxes.Command) (sandboxes.Exit, error) {
		<-ctx.Done()
		return sandboxes.Exit{}, context.Cause(ctx)
	}
	for _, part := range []string{"setup", "gate"} {
		t.Run(part, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone), shell: hang}, &recorder{})
				c.Timers = Timers{Run: time.Minute}
				if part == "setup" {
					c.Setup = []Command{{Line: "npm ci"}}
				} else {
					c.Gate = []Command{{Line: "make test"}}
				}
				wantEnd(t, Run(t.Context(), c), EndTimeout)
			})
		})
	}
}

func TestTieExitBeatsTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// The process ends by itself at the moment of its kill: its own exit, which the sandbox reports, counts.
		c := fakeConfig(fakeSandbox{agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			<-ctx.Done()
			_, _ = cmd.Stdout.Write([]byte(sayDone + "\n"))
			return sandboxes.Exit{}, nil
		}}, &recorder{})
		r := Run(t.Context(), c)
		wantEnd(t, r, EndDone)
		if it := wantEnding(t, r, 1, EndingExit); it.Failure != nil {
			t.Errorf("failure %v, want none", it.Failure)
		}
	})
}

func TestTieAbortBeatsExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		interrupt := make(chan struct{})
		c := fakeConfig(fakeSandbox{agent: func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			_, _ = cmd.Stdout.Write([]byte(sayDone + "\n"))
			close(interrupt)
			return sandboxes.Exit{}, nil
		}}, &recorder{})
		c.Interrupt = interrupt
		r := Run(t.Context(), c)
		wantEnd(t, r, EndInterrupted)
		wantEnding(t, r, 1, EndingInterrupted)
		if !errors.Is(r.Err, ErrInterrupted) || r.Work.Commits != 1 {
			t.Errorf("error %v, work %+v", r.Err, r.Work)
		}
	})
}

func TestTieAbortBeatsTimer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		lost := errors.New("claim is lost")
		c := fakeConfig(fakeSandbox{agent: func(ctx context.Context, _ sandboxes.Command) (sandboxes.Exit, error) {
			<-ctx.Done() // at the idle timeout
			cancel(lost)
			return sandboxes.Exit{}, context.Cause(ctx)
		}}, &recorder{})
		r := Run(ctx, c)
		wantEnd(t, r, EndInterrupted)
		wantEnding(t, r, 1, EndingInterrupted)
		if !errors.Is(r.Err, lost) {
			t.Errorf("error %v, want %v", r.Err, lost)
		}
	})
}

func TestAbortWorksInEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"setup", "prompt", "agent", "gate"} {
		for _, stopBy := range []string{"interrupt", "cancel"} {
			t.Run(step+" "+stopBy, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(t.Context())
					lost := errors.New("claim is lost")
					interrupt := make(chan struct{})
					hang := func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
						time.AfterFunc(time.Second, func() {
							if stopBy == "cancel" {
								cancel(lost)
							} else {
								close(interrupt)
							}
						})
						select {
						case <-cmd.Interrupt:
							return sandboxes.Exit{Code: 143, Signal: "SIGTERM"}, nil
						case <-ctx.Done():
							return sandboxes.Exit{}, context.Cause(ctx)
						}
					}
					s := fakeSandbox{agent: printLines(false, sayDone), shell: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
						if cmd.Argv[2] == step {
							return hang(ctx, cmd)
						}
						return sandboxes.Exit{}, nil
					}}
					if step == "agent" {
						s.agent = hang
					}
					c := fakeConfig(s, &recorder{})
					c.Prompt = prompt.Prompt{Template: "x !`prompt`"}
					c.Setup, c.Gate = []Command{{Line: "setup"}}, []Command{{Line: "gate"}}
					c.Interrupt = interrupt
					imports := 0
					c.Import = func(ctx context.Context) (Work, error) {
						imports++
						return Work{Tip: "t", Commits: 1, New: 1}, ctx.Err()
					}
					start := time.Now()
					r := Run(ctx, c)
					wantEnd(t, r, EndInterrupted)
					want := ErrInterrupted
					if stopBy == "cancel" {
						want = lost
					}
					if !errors.Is(r.Err, want) {
						t.Errorf("error %v, want %v", r.Err, want)
					}
					if got := time.Since(start); got != time.Second {
						t.Errorf("ended after %s", got)
					}
					if imports != 1 || r.Work.Tip != "t" {
						t.Errorf("%d imports, work %+v: every end takes the commits back, once", imports, r.Work)
					}
				})
			})
		}
	}
}

func TestSecondInterruptKillsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupt := make(chan struct{})
		c := fakeConfig(fakeSandbox{agent: printLines(true, "tool deaf to signals")}, &recorder{})
		c.Interrupt = interrupt
		time.AfterFunc(time.Second, func() { close(interrupt) })
		time.AfterFunc(3*time.Second, func() { cancel(errors.New("second")) })
		start := time.Now()
		wantEnd(t, Run(ctx, c), EndInterrupted)
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("ended after %s", got)
		}
	})
}

func TestCommandsGetTheInterruptAndItsGrace(t *testing.T) {
	t.Parallel()
	interrupt := make(chan struct{})
	checkCommand := func(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		if cmd.Interrupt != (<-chan struct{})(interrupt) || cmd.Grace != 10*time.Second {
			t.Errorf("%q: interrupt %v, grace %s", cmd.Argv, cmd.Interrupt, cmd.Grace)
		}
		if cmd.Stdout != nil && cmd.Argv[len(cmd.Argv)-1] == "agent" {
			_, _ = cmd.Stdout.Write([]byte(sayDone + "\n"))
		}
		return sandboxes.Exit{}, nil
	}
	c := fakeConfig(fakeSandbox{agent: checkCommand, shell: checkCommand}, &recorder{})
	c.Interrupt = interrupt
	c.Prompt = prompt.Prompt{Template: "!`x`"}
	c.Setup, c.Gate = []Command{{Line: "setup"}}, []Command{{Line: "gate"}}
	wantEnd(t, Run(t.Context(), c), EndDone)
}

func TestStuckImportIsCutShortAfterAStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone)}, &recorder{})
		c.Import = func(ctx context.Context) (Work, error) {
			cancel(errors.New("stop"))
			<-ctx.Done()
			return Work{}, context.Cause(ctx)
		}
		start := time.Now()
		r := Run(ctx, c)
		wantEnd(t, r, EndImport)
		if !errors.Is(r.Err, errImport) {
			t.Errorf("the reason is %v", r.Err)
		}
		if got := time.Since(start); got != importLimitStopped {
			t.Errorf("gave up after %s, want %s", got, importLimitStopped)
		}
	})
}

func TestTimerCheck(t *testing.T) {
	t.Parallel()
	zero := time.Unix(0, 0)
	s := func(n int) time.Time { return zero.Add(time.Duration(n) * time.Second) }
	timers := Timers{}.withDefaults()
	for _, tt := range []struct {
		name string
		p    activity
		now  int
		kill error
		warn bool
		next int
	}{
		{"fresh", activity{lastByte: s(0), warnedAt: s(0)}, 0, nil, false, 60},
		{"just before a warning", activity{lastByte: s(0), warnedAt: s(0)}, 59, nil, false, 60},
		{"warning", activity{lastByte: s(0), warnedAt: s(0)}, 60, nil, true, 120},
		{"last stretch", activity{lastByte: s(0), warnedAt: s(540)}, 541, nil, false, 600},
		{"kill, not warn", activity{lastByte: s(0), warnedAt: s(540)}, 600, errIdle, false, 600},
		{"byte puts the warning off", activity{lastByte: s(30), warnedAt: s(0)}, 60, nil, false, 90},
		{"grace", activity{lastByte: s(10), signalAt: s(10)}, 69, nil, false, 70},
		{"grace over", activity{lastByte: s(10), signalAt: s(10)}, 70, errGrace, false, 70},
		{"grace reset", activity{lastByte: s(60), signalAt: s(10)}, 70, nil, false, 120},
		{"grace cap", activity{lastByte: s(300), signalAt: s(10)}, 310, errGrace, false, 310},
	} {
		kill, warn, next := timers.check(tt.p, s(tt.now))
		if kill != tt.kill || warn != tt.warn || !next.Equal(s(tt.next)) {
			t.Errorf("%s: %v %t %s, want %v %t %s", tt.name, kill, warn, next.Sub(zero), tt.kill, tt.warn, s(tt.next).Sub(zero))
		}
	}
}
