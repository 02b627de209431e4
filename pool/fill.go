package pool

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// account is what one run may write on the disk that holds the state folder. Elsewhere an isolated run writes nothing that
// has no limit of its own, and what a run without isolation writes cannot be told from the user's.
type account struct {
	remove func()

	mu      sync.Mutex
	folders []string // guarded by mu
}

// account lets the pool's guard see what the run writes into its new worktree.
func (w *worker) account(ctx context.Context, tree *worktree.Tree) *account {
	a := &account{folders: tree.Folders()}
	a.remove = w.p.disk.Add(ctx, disk.Taker{Folders: a.all, Marks: []string{w.rec.Run, "RALPH_RUN=" + w.rec.Run, "RALPH_MARK=" + w.rec.Run}, End: func(err *disk.TakenError) {
		w.stop.stop(err)
		w.kill(err) // to be asked would leave it time to write on
	}})
	return a
}

// also adds what a sandbox keeps on this host for its commands.
func (a *account) also(box sandboxes.Sandbox) {
	if k, ok := box.(sandboxes.Keeper); ok && a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.folders = append(a.folders, k.Keeps()...)
	}
}

func (a *account) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.folders)
}

// close is for when the run's files are gone, or stay for good. It may be called again.
func (a *account) close() {
	if a != nil {
		a.remove()
	}
}

// watchDisk looks after the disk until the function that it returns is called.
func (s *sweep) watchDisk() (stop func()) {
	ctx, cancel := context.WithCancelCause(s.hard)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.pool.disk.Watch(ctx, func(*disk.ShortError) { s.wakeUp() })
	}()
	return func() { cancel(nil); <-done }
}

// noRoom reports that the disk has no room for another run. Runs that are on may give some back: that is waited for.
// When there are none the sweep is over, as when the agent is away: only a person can make room, and a ralph that waits for
// one under cron is a second one at the next hour. s.mu is held.
func (s *sweep) noRoom(idle bool) bool {
	short := s.pool.disk.Short()
	switch {
	case short == nil:
		s.held = false
		return false
	case idle:
		s.summary.Unavailable = short
	case !s.held:
		s.held = true
		s.pool.emit(Event{Kind: EventProblem, Text: "nothing new is started for now: " + short.Error()})
	}
	return true
}

// filled reports that the run was ended for what it wrote.
func (w *worker) filled() bool {
	_, yes := errors.AsType[*disk.TakenError](w.stop.cause())
	return yes
}

// finished reports the ends that a loop comes to by itself, whatever was about to end it.
func finished(e loop.End) bool {
	return slices.Contains([]loop.End{loop.EndDone, loop.EndNoChange, loop.EndNeedsInfo}, e)
}
