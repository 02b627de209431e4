package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// watchSignals turns SIGINT, SIGTERM and SIGHUP into the two requests to stop: the first closes interrupt, the second
// ends ctx. SIGQUIT, which Ctrl-\ sends, is both at once. What comes after them is left to the system, which ends ralph where it
// stands. For SIGHUP see Hangup of compose.Host; where nohup has it ignored, it stays so, so that the sweep outlasts the terminal.
func watchSignals(parent context.Context) (ctx context.Context, interrupt <-chan struct{}, hangup func() <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	asked, done := make(chan struct{}), make(chan struct{})
	reload := make(chan struct{}, 1)
	var reloads atomic.Bool
	next := func() os.Signal { // waits for a request to stop; nil: there is none any more
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP || !reloads.Load() {
					return s
				}
				select {
				case reload <- struct{}{}:
				default: // one is waiting
				}
			case <-done:
				return nil
			}
		}
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		defer signal.Stop(signals)
		first := next()
		if first == nil {
			return
		}
		close(asked)
		if first == syscall.SIGQUIT || next() != nil {
			cancel(exit.ErrKilled)
		}
	})
	hangup = func() <-chan struct{} {
		reloads.Store(true)
		signal.Notify(signals, syscall.SIGHUP) // nohup is no reason to read nothing again
		return reload
	}
	return ctx, asked, hangup, func() {
		close(done)
		watching.Wait()
		cancel(nil)
	}
}

// surviveClosedPipes keeps a program alive whose output nobody reads any more, so that it comes to its end in order; its
// writes fail instead. The signal is caught rather than ignored: what is ignored stays so in what ralph starts.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
