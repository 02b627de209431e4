package progress

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/attach"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/tui"
)

// StartView shows the runs on the terminal until stop is called; other output appears above the view. v is nil if standard error is
// not a terminal, or if the user asked for plain lines.
func StartView(a *compose.App, plain bool, title, leave string, actions tui.Actions) (v *tui.View, stop func()) {
	out, ok := a.Host.Stderr.(*os.File)
	if !ok || plain || !a.UI.Terminal || a.UI.Quiet || a.UI.Verbose || a.Host.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	in, _ := a.Host.Stdin.(*os.File)
	if !a.Host.Interactive {
		in = nil
	}
	v = tui.Start(tui.Config{Out: out, In: in, Env: a.Host.Env, Color: a.UI.ErrColor, Title: title, Leave: leave, Actions: actions})
	a.UI.Err.Divert(v)
	unwatch := watchSuspend(v.Suspend, v.Resume)
	return v, sync.OnceFunc(func() {
		unwatch()
		v.Stop()
		a.UI.Err.Divert(nil)
	})
}

// ViewActions returns the actions of a view of this repository's runs.
func ViewActions(a *compose.App, p *compose.Parts, name func(key string) string) tui.Actions {
	return tui.Actions{
		Name: func(r tui.Run) string { return name(r.Key) }, Cost: look.CostText,
		Stop: func(ctx context.Context, r tui.Run) error {
			return attach.Local{Journal: p.Journal}.Stop(ctx, attach.Run{ID: r.ID, Key: r.Key})
		},
		Diff: func(ctx context.Context, r tui.Run) (string, error) { return DiffText(ctx, p, r.Key) },
	}
}

// watchSuspend calls suspend before Ctrl-Z stops ralph, and resume when ralph continues, until stop is called. It calls resume
// every second, too, because a shell sends no signal when it moves ralph from the background to the foreground.
func watchSuspend(suspend, resume func()) (stop func()) {
	session, err := unix.Getsid(0)
	if signal.Ignored(syscall.SIGTSTP) || err != nil || session == unix.Getpgrp() { // no shell would continue ralph
		return func() {}
	}
	signals, done := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(signals, syscall.SIGTSTP, syscall.SIGCONT)
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				resume()
			case s := <-signals:
				if s == syscall.SIGTSTP {
					suspend()
					_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // Go cannot restore the default action of SIGTSTP
					continue
				}
				resume()
			case <-done:
				signal.Stop(signals)
				return
			}
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}
