package sandboxtest

import (
	"context"
	"errors"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes"
)

var closeCases = map[string]func(*suite){
	"close/ends what runs": func(s *suite) {
		r := s.open()
		life := r.lifeline()
		cmd, _, _ := sh(familyScript + "trap '' TERM; wait; wait")
		done := r.start(s.boundedContext(), cmd)
		life.awaitReady(familySize)
		if err := r.Close(s.boundedContext()); err != nil {
			s.Fatalf("Close: %v", err)
		}
		life.expectGone()
		if got := r.await(done); !errors.Is(got.err, sandboxes.ErrClosed) {
			s.Errorf("Exec gives %+v, want ErrClosed", got)
		}
	},
	"close/may be repeated": func(s *suite) {
		r := s.open()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if err := r.Close(s.boundedContext()); err != nil {
					s.Errorf("Close: %v", err)
				}
			})
		}
		wg.Wait()
		if err := r.Close(s.boundedContext()); err != nil {
			s.Errorf("Close again: %v", err)
		}
	},
	"close/no command runs after it": func(s *suite) {
		r := s.open()
		if err := r.Close(s.boundedContext()); err != nil {
			s.Fatal(err)
		}
		if _, err := r.Exec(s.boundedContext(), sandboxes.Command{Argv: []string{"cat"}}); !errors.Is(err, sandboxes.ErrClosed) {
			s.Errorf("Exec gives %v, want ErrClosed", err)
		}
	},
	"close/touches no other run": func(s *suite) {
		other := s.open()
		done, in, out := other.echo()
		in.say("before\n")
		out.await(s, "before\n")
		if err := s.open().Close(s.boundedContext()); err != nil {
			s.Fatal(err)
		}
		in.say("after\n")
		out.await(s, "before\nafter\n")
		in.Close()
		if got := other.await(done); got.err != nil || !got.exit.OK() {
			s.Errorf("the other run's command: %+v", got)
		}
	},
	"reap/ends what a crashed run left": func(s *suite) {
		reaper, ok := sandboxes.As[sandboxes.Reaper](s.provider(s.T))
		if !ok {
			s.Fatal("the provider is no Reaper: the remains of a crash are never found")
		}
		r := s.open()
		life := r.lifeline()
		cmd, _, _ := sh(familyScript + "trap '' TERM; wait; wait")
		ctx, cancel := context.WithCancelCause(s.boundedContext())
		defer cancel(nil)
		done := r.start(ctx, cmd)
		life.awaitReady(familySize)
		if err := reaper.Reap(s.boundedContext(), r.run); err != nil {
			s.Fatalf("Reap: %v", err)
		}
		life.expectGone()
		r.await(done) // after a crash any end is fine
		if err := reaper.Reap(s.boundedContext(), r.run); err != nil {
			s.Errorf("Reap of nothing: %v", err)
		}
	},
}
