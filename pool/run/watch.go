package run

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

const (
	briefCheckTime = 3 * time.Second  // limit of a look at the issue before such a stop, or after CheckIssues
	minCheckGap    = 10 * time.Second // minimum time between looks after CheckIssues: on a forge ralph's own changes cause some, too
)

// watched has what the watcher has found out about the issue and shown on it.
type watched struct {
	edited        atomic.Bool // the issue differs from the snapshot
	progressShown atomic.Bool // the issue has a note of progress
	stopProgress  func()      // stops the notes of progress, and waits for one that is being written
}

// watch watches a run until ctx ends: it renews the claim, has the disk watched, reports progress, and checks whether the issue
// still qualifies and whether a stop was requested. wait returns when the watcher's goroutines have ended.
func (x *execution) watch(ctx context.Context) (wait func()) {
	var watching sync.WaitGroup
	stopWatch := x.r.spaces.Disk.Watch(func() {})
	watching.Go(func() {
		if x.claim.Heartbeat(ctx) {
			x.stop.Kill(halt.Error(journal.StopClaimLost, ""))
		}
	})
	checkNow := x.r.checkRequest.Load()
	watching.Go(func() { x.watchIssue(ctx, checkNow) })
	watching.Go(func() {
		if journal.AwaitStopRequest(ctx, x.run.Dir) {
			x.checkIssueBriefly(ctx) // a person who closes the issue also requests the stop
			x.stop.Stop(halt.Error(journal.StopAsked, ""))
		}
	})
	waiting, quiet := context.WithCancelCause(ctx)
	reported, about := make(chan struct{}), new(x.reportInput(journal.State{}))
	watching.Go(func() {
		defer close(reported)
		x.reportProgress(ctx, waiting, about)
	})
	x.stopProgress = func() {
		quiet(nil)
		<-reported
	}
	return func() { watching.Wait(); stopWatch() }
}

// CheckIssues makes all runs in progress look at their issues soon.
func (r *Runner) CheckIssues() { close(*r.checkRequest.Swap(new(make(chan struct{})))) }

// watchIssue checks the issue. The next call of CheckIssues closes checkNow.
func (x *execution) watchIssue(ctx context.Context, checkNow *chan struct{}) {
	reconcile := time.NewTicker(x.c.Reconcile)
	defer reconcile.Stop()
	var last time.Time
	var soon <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-*checkNow:
			checkNow = x.r.checkRequest.Load()
			if soon == nil {
				soon = time.After(time.Until(last.Add(minCheckGap)))
			}
		case <-soon:
			soon, last = nil, time.Now()
			x.checkIssueBriefly(ctx)
		case <-reconcile.C:
			x.refreshIssue(ctx)
		}
	}
}

func (x *execution) checkIssueBriefly(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, briefCheckTime)
	defer cancel()
	x.refreshIssue(ctx)
}

// reportProgress writes the run's progress on the issue from time to time, when it has changed, until waiting ends.
func (x *execution) reportProgress(ctx, waiting context.Context, about *report.Input) {
	due := time.NewTimer(x.c.ProgressReport)
	defer due.Stop()
	for about.Record.Kind == journal.KindIssue {
		select {
		case <-waiting.Done():
		case <-due.C:
		}
		if waiting.Err() != nil || x.stop.Cause() != nil || !x.claim.Valid() {
			return
		}
		text := report.Progress(about, x.events.Latest())
		if err := x.writeReport(ctx, text); err != nil {
			x.log.Warn("progress not reported", "error", err)
		} else {
			x.progressShown.Store(true)
		}
		select {
		case <-waiting.Done():
		case <-x.events.News():
		}
		due.Reset(x.c.ProgressReport)
	}
}

// refreshIssue reads the issue during a run. A failure to read it changes nothing.
func (x *execution) refreshIssue(ctx context.Context) {
	if err := x.checkIssue(ctx); err != nil {
		x.log.Debug("issue not refreshed", "error", err)
	}
}

// checkIssue stops the run if its issue was closed, unlabelled or blocked.
func (x *execution) checkIssue(ctx context.Context) error {
	if x.run.Kind != journal.KindIssue || x.task.Unfit == nil {
		return nil
	}
	issue, err := x.c.Tracker.Get(ctx, x.run.Key)
	switch {
	case errors.Is(err, tracker.ErrNotFound):
		x.stop.Stop(halt.Superseded(tracker.Unfit{Code: tracker.UnfitGone}))
	case err != nil:
		return err
	default:
		if x.task.Edited != nil && x.task.Edited(issue) {
			x.edited.Store(true)
		}
		if why := x.task.Unfit(issue); why.Code != "" {
			x.stop.Stop(halt.Superseded(why))
		}
	}
	return nil
}
