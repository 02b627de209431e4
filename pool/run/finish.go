package run

import (
	"context"
	"errors"
	"slices"

	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// errLapsed means that a stage has to wait because the run's claim has expired.
var errLapsed = errors.New("the claim has expired")

// report writes the final report on the issue. Runs that met an unavailable agent or an outage, or died before there was any
// work, write none, because the next sweep tries again, unless the issue has their notes of progress: then the report replaces
// those.
func (x *execution) report(ctx context.Context, s journal.State) (journal.State, error) {
	x.stopProgress() // progress must not overwrite the final report
	if x.run.Kind != journal.KindIssue {
		return s, nil
	}
	if !x.claim.MayAct(ctx) {
		if err := x.leaveLapsed(s); err != nil {
			return s, err
		}
		x.retract(ctx, s)
		return s, nil
	}
	if !s.Facts.Done { // otherwise this was checked before publishing
		x.refreshIssue(ctx)
	}
	s.Facts.Edited = s.Facts.Edited || x.edited.Load()
	s, err := x.replyToThreads(ctx, s)
	if err != nil {
		return x.handleEffect(ctx, s, err)
	}
	in := x.reportInput(s)
	v, body := in.Record.Verdict, ""
	hasWork, noted := s.Commits > 0 || s.WIP != "", s.Shown || x.progressShown.Load()
	died := v.Outcome == journal.Interrupted && s.Facts.Died()
	if hasWork || noted || v.Final || !v.Outcome.Unavailable() && !died {
		body = report.Final(in)
	}
	err = x.announce(ctx, in.Record, body)
	if err == nil && body != "" {
		err = x.writeReport(ctx, body)
	}
	return x.handleEffect(ctx, s, err)
}

// leaveLapsed leaves the stage to the next sweep if the claim has only expired: perhaps nobody has taken it, and then nobody else
// would do the rest.
func (x *execution) leaveLapsed(s journal.State) error {
	if s.Facts.StoppedStage != "" || !x.claim.Lapsed() {
		return nil
	}
	return &deferral{error: errLapsed}
}

// writeReport replaces the report on the issue. The caller holds the claim.
func (x *execution) writeReport(ctx context.Context, body string) error {
	return x.c.Tracker.Report(ctx, x.run.Key, tracker.Report{Run: x.run.ID, Mark: x.claim.Mark(), Body: body})
}

// retract removes the note of progress from this clone's own copy of the issue, if it has one. The new holder of the claim
// reports elsewhere.
func (x *execution) retract(ctx context.Context, s journal.State) {
	own, ok := tracker.As[tracker.Retracter](x.c.Tracker)
	if !ok {
		return
	}
	in, change := x.reportInput(s), tracker.Change{}
	if x.c.Labels.Claimed != "" {
		change.RemoveLabels = []string{x.c.Labels.Claimed}
	}
	err := own.Retract(ctx, x.run.Key, tracker.Report{Run: x.run.ID, Body: report.Final(in)}, change)
	if err != nil && !errors.Is(err, tracker.ErrNotFound) {
		x.log.Warn("lost claim not reported", "error", err)
	}
}

// Corrected returns the report of a run whose issue another clone has finished since; by is its skip.
func (r *Runner) Corrected(last journal.Record, by journal.Skip) string {
	in := r.reportInput(last)
	in.Done = by
	return report.Final(in)
}

// replyToThreads replies to the review threads that the run has answered. Only after an outage it is tried again.
func (x *execution) replyToThreads(ctx context.Context, s journal.State) (journal.State, error) {
	commander, ok := tracker.As[tracker.Commander](x.c.Tracker)
	if !ok || len(x.run.Threads) == 0 || s.Tip == x.run.Earlier.Tip || s.Published == "" || s.Verdict.Outcome != journal.Succeeded {
		return s, nil
	}
	err := commander.Addressed(ctx, s.Request.Number, x.run.Threads, s.Tip)
	if err != nil && !publish.Unreachable(err) {
		return x.warn(s, err), nil
	}
	return s, err
}

// Explain describes how the issue's last run ended; see report.Explain. last may be an older run of this host, or zero.
func (r *Runner) Explain(last journal.Record, t journal.Tally, holder string) string {
	return report.Explain(r.reportInput(last), t, holder)
}

// earlierRuns lists the issue's runs that have ended, for reports.
func (x *execution) earlierRuns(ctx context.Context) []journal.Record {
	if x.run.Kind != journal.KindIssue {
		return nil
	}
	runs, err := x.c.Store.Find(ctx, journal.Query{Pool: x.run.Pool, Key: x.run.Key, Kind: journal.KindIssue})
	if err != nil {
		x.log.Warn("earlier runs not read", "error", err)
	}
	return slices.DeleteFunc(runs, func(r journal.Record) bool { return r.ID == x.run.ID || r.Ended.IsZero() })
}

// reportDeclined reports on the issue why the remote or the forge refuses the commits or their request: a person may have to
// change a rule there, or close another request. From the stage Report on, the final report is already written.
func (x *execution) reportDeclined(ctx context.Context, s journal.State, why error) {
	refused := errors.Is(why, worktree.ErrDeclined) || errors.Is(why, tracker.ErrOccupied)
	if x.run.Kind != journal.KindIssue || !s.Stage.Before(journal.StageReport) || !refused || !x.claim.Valid() {
		return
	}
	x.stopProgress()
	body := report.Waiting(x.reportInput(s), why)
	if err := x.writeReport(ctx, body); err != nil {
		x.log.Warn("refused push not reported", "error", err)
		return
	}
	x.progressShown.Store(true)
}

// HandOver hands a request that has used up its rounds to a person: it writes the report, then sets labels. runs has the runs of
// this host; if it is empty, the report is not changed. mark is the mark of the issue's report.
func (r *Runner) HandOver(ctx context.Context, f tracker.FollowUp, runs journal.History, rounds int, mark string) error {
	if last, ok := runs.Last(); ok {
		in := r.reportInput(last)
		in.Earlier = runs
		text := tracker.Report{Run: last.ID, Mark: mark, Body: report.HandOver(in, f, rounds)}
		if err := r.c.Tracker.Report(ctx, f.Key, text); err != nil {
			return err
		}
	}
	return r.c.Tracker.Change(ctx, f.Key, tracker.Change{
		AddLabels: []string{r.c.Labels.NeedsHuman}, RemoveLabels: []string{r.c.Labels.InReview},
	})
}

// label sets the labels that show the outcome.
func (x *execution) label(ctx context.Context, s journal.State) (journal.State, error) {
	if x.run.Kind != journal.KindIssue {
		return s, nil
	}
	if !x.claim.MayAct(ctx) {
		return s, x.leaveLapsed(s)
	}
	c := decide.Change(x.c.Labels, journal.Record{Run: x.run, State: s})
	if x.c.StopUnlabels && s.Verdict.Reason.Code == journal.ReasonAsked && x.run.FollowUp == "" && len(x.run.Settings.Require) > 0 {
		c.RemoveLabels = append(c.RemoveLabels, x.run.Settings.Require[0])
	}
	if x.stop.Is(journal.StopSuperseded) { // a person has taken it over
		c.RemoveLabels = slices.DeleteFunc(c.RemoveLabels, func(l string) bool { return tracker.SameLabel(l, x.c.Labels.NeedsHuman) })
	}
	err := x.c.Tracker.Change(ctx, x.run.Key, c)
	x.result.Closed = c.Close && err == nil
	return x.handleEffect(ctx, s, err)
}

// release gives the claim up.
func (x *execution) release(ctx context.Context, s journal.State) (journal.State, error) {
	if !x.claim.MayAct(ctx) {
		return s, nil
	}
	return x.handleEffect(ctx, s, x.claim.End(ctx, journal.Record{Run: x.run, State: s}))
}

// handleEffect handles the error of an outward effect. It leaves a transient error to the next sweep. After MaxTries the error
// becomes a warning and the run continues.
func (x *execution) handleEffect(ctx context.Context, s journal.State, err error) (journal.State, error) {
	switch {
	case err == nil:
		s.Tries = 0
		return s, nil
	case x.claim.Lost(err):
		return s, nil
	case x.issueIsGone(ctx, err):
		s.Tries, s.Facts.Gone = 0, true
		if v := decide.Verdict(s.Facts); v.Outcome == journal.Superseded && s.Verdict.Outcome != journal.Superseded {
			s.Warn(sandboxes.Noticef("before that, its outcome was %s: %s", s.Verdict.Outcome, report.Reason(s.Verdict.Reason)))
		}
		return s, nil
	case publish.Outage(err) || publish.Unreachable(err) && s.Tries+1 < decide.MaxTries:
		if !publish.Outage(err) {
			s.Tries++
		}
		return s, &deferral{err, !x.stop.OnlyThisRun()}
	case x.stop.Is(journal.StopShutdown):
		return s, &deferral{error: err}
	case s.Tries+1 < decide.MaxTries && x.run.Kind == journal.KindIssue:
		s.Tries++
		return s, &deferral{error: err}
	}
	s = x.warn(s, err)
	s.Tries = 0
	switch s.Stage {
	case journal.StageReport:
		s.Unreported = err.Error()
	case journal.StageLabel:
		s.Unlabelled = err.Error()
	}
	return s, nil
}

// issueIsGone reports whether the issue does not exist any more.
func (x *execution) issueIsGone(ctx context.Context, err error) bool {
	if x.run.Kind != journal.KindIssue || !errors.Is(err, tracker.ErrNotFound) {
		return false
	}
	_, now := x.c.Tracker.Get(ctx, x.run.Key)
	return errors.Is(now, tracker.ErrNotFound) // otherwise only a part of the issue was not found
}

// announce writes the outcome into the claim before anything shows it. Only final outcomes need that, and only with a remote:
// without one the local journal is enough.
func (x *execution) announce(ctx context.Context, r journal.Record, body string) error {
	switch {
	case !r.Verdict.Final || x.c.Repo.Remote() == "":
		return nil
	case x.c.ReportsHere():
		return x.claim.End(ctx, r)
	}
	return x.claim.Announce(ctx, r, x.pending(r, body))
}

// pending returns the part of the run's report that is still to be written.
func (x *execution) pending(r journal.Record, body string) report.Pending {
	return report.Pending{Report: body, Change: decide.Change(x.c.Labels, r)}
}
