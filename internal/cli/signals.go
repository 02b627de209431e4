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

// watchSignals turns SIGINT, SIGTERM and SIGHUP into two requests to stop: the first signal closes interrupt, the second cancels ctx.
// SIGQUIT, which Ctrl-\ sends, does both at once. Later signals get the system's default action, which kills ralph.
// stop ends watching, but catches the signals until the process ends.
// An ignored SIGHUP, as under nohup, stays ignored, so that a sweep outlasts its terminal; see also [compose.Host.Hangup].
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
	next := func() os.Signal { // waits for a request to stop; nil: watching has ended
		for {
			select {
			case s := <-signals:
				if s != syscall.SIGHUP || !reloads.Load() {
					return s
				}
				select {
				case reload <- struct{}{}:
				default: // a reload is pending
				}
			case <-done:
				return nil
			}
		}
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		first := next()
		if first == nil {
			return // the process ends: giving the signals back first would only take time
		}
		close(asked)
		if first == syscall.SIGQUIT || next() != nil {
			cancel(exit.ErrKilled)
		}
		signal.Stop(signals)
	})
	hangup = func() <-chan struct{} {
		reloads.Store(true)
		signal.Notify(signals, syscall.SIGHUP) // also under nohup: here SIGHUP means reload
		return reload
	}
	return ctx, asked, hangup, func() {
		close(done)
		watching.Wait()
		cancel(nil)
	}
}

// surviveClosedPipes makes writes to a closed pipe fail instead of killing ralph, so that it ends in order. It catches SIGPIPE
// and does not ignore it, because child processes would inherit an ignored signal.
func surviveClosedPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
