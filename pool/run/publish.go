package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// outcome returns the outcome that the facts so far mean.
func outcome(s journal.State) journal.Outcome { return decide.Verdict(s.Facts).Outcome }

// publishable reports whether there are commits to publish, or to recommend to a person.
func (x *execution) publishable(s journal.State) bool {
	switch outcome(s) {
	case journal.Succeeded:
		return s.Commits > 0
	case journal.GateFailed:
		return s.Commits > 0 && x.publishesOutward(s)
	}
	return false
}

// publishesOutward reports whether publishing moves the commits beyond the run's own branch.
func (x *execution) publishesOutward(s journal.State) bool {
	switch x.run.Settings.Publish {
	case journal.PublishMerge: // without a person, changed checks do not merge
		return x.run.Merges(decide.Verdict(s.Facts))
	case journal.PublishBranch, journal.PublishRequest:
		return x.c.Repo.Remote() != ""
	}
	return false
}

// publish publishes the commits and then removes sandbox and worktree. The commits are safe on ralph's refs. The verdict does not
// change after this stage.
func (x *execution) publish(ctx context.Context, s journal.State) (journal.State, error) {
	s, err := x.moveBranch(ctx, s)
	if err == nil {
		s, err = x.publishCommits(ctx, s)
	}
	if err != nil {
		return s, err
	}
	x.releaseMergeLock()
	s.Warn(x.space.Close(ctx, x.run.Keep)...)
	if x.space != nil && x.space.Tree != nil {
		if s.SandboxMayRun = x.space.Unclosed; x.run.Keep || x.space.Tree.Unsaved() {
			s.Tree = x.space.Dir
		}
	}
	return x.dropBranch(ctx, s), nil
}

// moveBranch moves the branch to the commits if it was checked out when they were imported. While it still is, the run waits.
func (x *execution) moveBranch(ctx context.Context, s journal.State) (journal.State, error) {
	if s.Published != "" || s.Facts.StoppedStage != "" || x.space == nil || x.space.Tree == nil {
		return s, nil // the next run begins at commits that the branch lacks
	}
	err := x.space.Tree.MoveBranch(ctx)
	moved, merges := errors.Is(err, worktree.ErrMoved), x.run.Settings.Publish == journal.PublishMerge
	switch {
	case err == nil || moved && merges:
		return s, nil
	case !moved && s.Tries+1 < decide.MaxTries && x.run.Kind == journal.KindIssue && x.claim.Held() && ctx.Err() == nil:
		return x.handleFault(s, err)
	case moved || x.publishable(s):
		return x.handlePublishError(ctx, s, err)
	}
	return x.warn(s, err), nil
}

// dropBranch removes a scratch branch if the base has its commits, and any other that the run has made and not used.
func (x *execution) dropBranch(ctx context.Context, s journal.State) journal.State {
	// Without the claim another run may have begun on the branch.
	if !x.claim.Valid() || s.Tree != "" || s.WIP != "" || s.Commits > 0 && !(x.run.Scratch && x.result.Merged != "") {
		return s
	}
	err := error(nil)
	if x.run.Scratch {
		err = x.c.Repo.Drop(ctx, x.run.Key, s.Tip)
	} else if x.space != nil && x.space.Tree != nil {
		err = x.space.Tree.DropUnused(ctx)
	}
	if err != nil {
		return x.warn(s, err)
	}
	return s
}

// mergeRetries is the number of times a merge is tried again because the base has moved.
const mergeRetries = 5

// publishCommits publishes as Settings.Publish says, unless that is done. If the base has moved meanwhile, it verifies anew.
func (x *execution) publishCommits(ctx context.Context, s journal.State) (journal.State, error) {
	for try := 0; ; try++ {
		if s.Published != "" || !x.publishable(s) {
			return s, nil
		}
		next, err := x.tryToPublish(ctx, s)
		if s = next; err == nil {
			return s, nil
		}
		moved := errors.Is(err, worktree.ErrMoved) && x.run.Settings.Publish == journal.PublishMerge
		if x.claim.Lost(err) || !moved || try == mergeRetries {
			return x.handlePublishError(ctx, s, err)
		}
		if s, err = x.verify(ctx, s); err != nil {
			s.Stage = journal.StageVerify
			return s, err
		}
	}
}

// tryToPublish publishes the commits if the run still may.
func (x *execution) tryToPublish(ctx context.Context, s journal.State) (journal.State, error) {
	there, done := x.stop.ForRemote(ctx)
	defer done()
	if x.stop.Killed || x.publishesOutward(s) && !x.mayPublish(there) {
		return x.cut(ctx, s, journal.StagePublish), nil
	}
	err := x.checkIssue(there)
	if x.stop.Is(journal.StopSuperseded) {
		return x.cut(ctx, s, journal.StagePublish), nil
	}
	s.Facts.Outdated = s.Facts.Edited || x.edited.Load()
	outward := x.publishesOutward(s)
	if !outward || !publish.Unreachable(err) {
		err = x.signProof(there, &s, outward)
	}
	if err != nil || !outward {
		return s, err
	}
	if err = x.publishOnce(there, &s); err != nil {
		return s, err
	}
	s.Tries, s.Facts.Done = 0, true
	_ = x.save(ctx, s) // on failure the next stage saves again
	return s, nil
}

// handlePublishError turns an error of publishing into facts, a warning, or a deferral.
func (x *execution) handlePublishError(ctx context.Context, s journal.State, err error) (journal.State, error) {
	switch {
	case x.claim.Lost(err):
		return x.cut(ctx, s, journal.StagePublish), nil
	case errors.Is(err, worktree.ErrMoved) && x.run.Settings.Publish != journal.PublishMerge:
		// Moved by a person, or by a run of another clone that took the issue after this one died. The next run begins at their
		// commits.
		s.Facts.StoppedStage, s.Facts.Stop, s.Facts.StopBy = journal.StagePublish, journal.StopMoved, err.Error()
		return s, nil
	case outcome(s) == journal.GateFailed && !publish.Unreachable(err):
		return x.warn(s, fmt.Errorf("publish: %w", err)), nil // the outcome does not depend on the draft
	case errors.Is(err, worktree.ErrUndone):
		s.Facts.Publish = &journal.Fault{Kind: journal.FaultUndone, Text: err.Error()}
		return s, nil
	case errors.Is(err, worktree.ErrFiltered):
		s.Facts.Policy = []string{err.Error()}
		return s, nil
	case errors.Is(err, worktree.ErrConflict) || errors.Is(err, worktree.ErrDirty) && x.run.Kind != journal.KindIssue:
		s.Facts.Conflict = err.Error()
		return s, nil
	case x.claim.Held() && ctx.Err() == nil:
		return x.handleFault(s, err)
	case x.run.Kind == journal.KindIssue && x.claim.Lapsed(): // perhaps they are published
		return s, &deferral{error: fmt.Errorf("%w: %w", errLapsed, err)}
	}
	return x.cut(ctx, s, journal.StagePublish), nil
}

// signProof signs the statement about the commits to be published. Only if the remote is unreachable or ctx has ended it is tried
// again.
func (x *execution) signProof(ctx context.Context, s *journal.State, outward bool) error {
	if x.c.Proof == nil || x.run.Kind != journal.KindIssue || s.Proof.Tip == s.Tip || outcome(*s) != journal.Succeeded {
		return nil
	}
	record := report.Redacted(journal.Record{Run: x.run, State: *s}, x.c.Secrets)
	made, err := x.c.Proof.Prove(ctx, record, x.base.Commit, outward && x.run.Settings.Publish != journal.PublishMerge)
	if err != nil && (publish.Unreachable(err) || ctx.Err() != nil) {
		return err
	}
	if s.Proof = made; err != nil {
		*s = x.warn(*s, err)
	}
	return nil
}

func (x *execution) publishOnce(ctx context.Context, s *journal.State) (err error) {
	switch x.run.Settings.Publish {
	case journal.PublishMerge:
		return x.merge(ctx, s)
	case journal.PublishRequest:
		return x.request(ctx, s)
	}
	done := *s
	done.Published, done.Facts.Done = publish.Pushed(x.c.Repo.Remote()), true
	if err = x.push(ctx, x.reportInput(done)); err == nil {
		s.Published = done.Published
	}
	return err
}

// mayPublish reports whether the run holds the claim, before it publishes anything.
func (x *execution) mayPublish(ctx context.Context) bool {
	pushFirst := x.run.Settings.Publish != journal.PublishMerge && x.c.Proof == nil && !x.c.Requests.AutoMerge
	return x.claim.MayPublish(ctx, pushFirst)
}

// isPushed reports whether, by the claim's record, the commits are pushed already: ralph died right after the push.
func (x *execution) isPushed(s journal.State) bool {
	d, known := x.claim.Outcome()
	is := x.publishable(s) && x.publishesOutward(s) && x.run.Settings.Publish == journal.PublishBranch
	return is && known && d.Tip == s.Tip && d.Outcome == string(outcome(s))
}

// push pushes the branch. If nothing else is to be published, the claim ends, or also records what is left to report.
func (x *execution) push(ctx context.Context, in report.Input) error {
	var left *report.Pending
	if in.Record.Verdict.Final && x.run.Settings.Publish != journal.PublishRequest {
		if x.c.ReportsHere() {
			return x.claim.PushAndFinish(ctx, x.space.Tree, in.Record)
		}
		pending := x.pending(in.Record, report.Final(in))
		left = &pending
	}
	return x.claim.Push(ctx, x.space.Tree, in.Record, left)
}

// merge moves the base branch to the verified tip.
func (x *execution) merge(ctx context.Context, s *journal.State) error {
	title, _ := tracker.Clean(x.run.Title)
	message := strings.TrimSuffix(fmt.Sprintf("Merge %s: %s", x.run.Branch, title), ": ")
	into, err := x.c.Repo.Merge(ctx, x.base, s.Tip, message)
	if errors.Is(err, worktree.ErrBehind) && !errors.Is(err, worktree.ErrUndone) {
		*s = x.warn(*s, err)
	} else if err != nil {
		return err
	}
	x.result.Merged = into
	s.Published = fmt.Sprintf("merged into %s as %.12s", x.base.Name, into)
	return nil
}

// request pushes the branch, and opens its pull or merge request or updates the open one.
func (x *execution) request(ctx context.Context, s *journal.State) error {
	in := x.reportInput(*s)
	err := x.c.Requests.KeepOpen(ctx, x.c.Tracker, x.run.Branch, in.Record.Verdict)
	if err == nil {
		err = x.push(ctx, in)
	}
	if err != nil {
		return err
	}
	own, err := publish.Template(ctx, x.c.Repo.Git(), x.base.Commit, x.c.Tracker)
	if err != nil {
		return err
	}
	body, err := report.RequestBody(ctx, x.c.Requests.Body, report.Request{Input: in, Commits: x.space.Last.Commits, Template: own})
	if err != nil {
		return err
	}
	s.Request, err = x.c.Requests.Open(ctx, x.c.Tracker, publish.Request{
		Key: x.run.Key, Head: x.run.Branch, Base: x.base.Name, Remote: x.c.Repo.Remote(),
		Title: report.RequestTitle(in, publish.TitleLimit), Body: body, Verdict: in.Record.Verdict, Tip: s.Tip,
	})
	if err != nil {
		return err
	}
	if s.Published = s.Request.Published(); s.Request.Unmerged != "" {
		*s = x.warn(*s, errors.New("the forge does not merge the request by itself: "+s.Request.Unmerged))
	}
	return nil
}

// reportInput returns the data for the run's reports.
func (x *execution) reportInput(s journal.State) report.Input {
	s.Facts.CompletedAt, s.Facts.Edited = time.Now(), s.Facts.Edited || x.edited.Load()
	s.Verdict = decide.Verdict(s.Facts)
	in := x.r.reportInput(journal.Record{Run: x.run, State: s})
	in.Earlier, in.Issue, in.Invisible, in.Unfit = x.earlier, x.task.Issue, x.invisible, x.stop.Unfit()
	return in
}

// reportInput returns the data that all reports need.
func (r *Runner) reportInput(rec journal.Record) report.Input {
	_, forge := tracker.As[tracker.Requester](r.c.Tracker)
	_, commands := tracker.As[tracker.Commander](r.c.Tracker)
	return report.Input{
		Record: rec, Signals: append([]string{loop.DefaultSignal}, r.c.Signals...), GateOff: !rec.Settings.Checks.Clean,
		Secrets: r.c.Secrets, Now: time.Now(),
		Steps: report.Steps{
			Local: !forge, Hints: r.c.Hints, NeedsHuman: r.c.Labels.NeedsHuman, NeedsInfo: r.c.Labels.NeedsInfo,
			Rounds: r.c.Requests.MaxRounds > 0, Commands: commands,
		},
	}
}
