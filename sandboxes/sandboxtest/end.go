package sandboxtest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// familyScript is a script that starts four background processes in ways that escape a naive killer. Each has the lifeline open.
const familyScript = holdScript + detachScript + `
(echo ready >&9; exec sleep 100) &
(detach sh -c 'echo ready >&9; exec sleep 100' &)
detach sh -c 'sh -c "trap : TERM HUP INT; echo ready >&9; sleep 100; sleep 100" & wait' &
(trap '' TERM HUP INT; echo ready >&9; exec sleep 100) </dev/null >/dev/null 2>&1 &
`

const familySize = 4

var endCases = map[string]func(*suite){
	"interrupt/the command may clean up": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		cmd, out, _ := sh(holdScript + `trap 'echo bye; exit 7' TERM; echo ready >&9; while :; do sleep 100 & wait; done`)
		stop := make(chan struct{})
		cmd.Interrupt, cmd.Grace = stop, limit
		done := r.start(s.boundedContext(), cmd)
		life.awaitReady(1)
		close(stop)
		if got := r.await(done); got.err != nil || got.exit != (sandboxes.Exit{Code: 7}) {
			s.Errorf("ended with %+v, want code 7", got)
		}
		if out.String() != "bye\n" {
			s.Errorf("its last output is %q", out)
		}
		life.expectGone()
	},
	"interrupt/a command that ignores it is killed": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		cmd, _, _ := sh(holdScript + `trap '' TERM; echo ready >&9; sleep 100`)
		stop := make(chan struct{})
		cmd.Interrupt, cmd.Grace = stop, 20*time.Millisecond
		done := r.start(s.boundedContext(), cmd)
		life.awaitReady(1)
		close(stop)
		want := sandboxes.Exit{Code: 137, Signal: "SIGKILL"}
		if got := r.await(done); got.err != nil || got.exit != want {
			s.Errorf("ended with %+v, want %+v", got, want)
		}
		life.expectGone()
	},
	"interrupt/what the command started goes too": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		cmd, _, _ := sh(familyScript + "wait")
		stop := make(chan struct{})
		cmd.Interrupt, cmd.Grace = stop, limit
		done := r.start(s.boundedContext(), cmd)
		life.awaitReady(familySize)
		close(stop)
		want := sandboxes.Exit{Code: 143, Signal: "SIGTERM"}
		if got := r.await(done); got.err != nil || got.exit != want {
			s.Errorf("ended with %+v, want %+v", got, want)
		}
		life.expectGone()
	},
	"context/its end kills the whole tree": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		ctx, cancel := context.WithCancelCause(s.boundedContext())
		cmd, _, _ := sh(familyScript + "trap '' TERM; wait; wait")
		done := r.start(ctx, cmd)
		life.awaitReady(familySize)
		cancel(errStop)
		if got := r.await(done); !errors.Is(got.err, errStop) {
			s.Errorf("Exec gives %+v, want the context's cause", got)
		}
		life.expectGone()
	},
	"context/ended before": func(s *suite) {
		r := s.open()
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errStop)
		cmd, _, _ := sh("printf x >ran")
		if _, err := r.Exec(ctx, cmd); !errors.Is(err, errStop) {
			s.Errorf("Exec gives %v, want the context's cause", err)
		}
		r.text("test ! -e ran")
	},
	"exit/what is left behind is killed": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		in, stdin := newInput(s)
		cmd, out, _ := sh(familyScript + "read -r x; echo done; exit 5")
		cmd.Stdin = stdin
		done := r.start(s.boundedContext(), cmd)
		life.awaitReady(familySize)
		in.say("now\n")
		in.Close()
		if got := r.await(done); got.err != nil || got.exit != (sandboxes.Exit{Code: 5}) {
			s.Errorf("ended with %+v, want code 5", got)
		}
		if out.String() != "done\n" {
			s.Errorf("stdout is %q", out)
		}
		life.expectGone()
	},
	"exit/no writer is called afterwards": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		var returned atomic.Bool
		late := writerFunc(func(p []byte) (int, error) {
			if returned.Load() {
				s.Error("a writer is called after Exec has returned")
			}
			return len(p), nil
		})
		cmd, _, _ := sh(holdScript + detachScript + `
			detach sh -c 'echo ready >&9; while :; do echo noise; echo noise >&2; done' &
			echo ready >&9; read -r x`)
		in, stdin := newInput(s)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, late, late
		done := r.start(s.boundedContext(), cmd)
		life.awaitReady(2)
		in.say("now\n")
		in.Close()
		r.await(done)
		returned.Store(true)
		life.expectGone()
	},
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
