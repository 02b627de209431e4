package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool/internal/decide"
	"github.com/ralph-pool/ralph/pool/internal/feedback"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// verify imports the last commits and checks exactly those that would be published: they are rebased if needed, the policy allows
// them, and the gate passes on a clean checkout of them.
func (x *execution) verify(ctx context.Context, s journal.State) (journal.State, error) {
	if x.space == nil && s.Facts.Open == nil {
		return x.verifyLost(ctx, s)
	}
	s, err := x.closeWork(ctx, s)
	if err == nil && x.space != nil && x.space.Tree != nil && x.space.Last.Controls && !x.publishable(s) { // a person may merge them
		finished, failed := x.rewriteCommits(ctx, s)
		if s = finished; failed != nil {
			s = x.warn(s, failed)
		}
	}
	if err != nil || s.Facts.StoppedStage != "" || !x.publishable(s) {
		return s, err
	}
	if x.stop.Killed {
		return x.cut(ctx, s, journal.StageVerify), nil
	}
	urgent, cancel := x.stop.UntilUrgent(ctx)
	defer cancel()
	s, err = x.rebaseAndCheck(urgent, s)
	switch {
	case err == nil:
		return x.countChanges(ctx, s), nil
	case x.stop.Is(journal.StopShutdown) && ctx.Err() == nil && x.run.Kind == journal.KindIssue && !x.run.Settings.Attended:
		return s, &deferral{error: err} // the agent's work is done; the next sweep verifies it
	case x.stop.Stopped(ctx):
		return x.cut(ctx, s, journal.StageVerify), nil
	}
	return x.handleFault(s, err)
}

// countChanges counts the changed files and lines, for reports.
func (x *execution) countChanges(ctx context.Context, s journal.State) journal.State {
	if x.c.Count == nil {
		return s
	}
	changed, err := x.c.Count(ctx, x.base.Commit, s.Tip)
	if err != nil {
		x.log.Debug("changes not counted", "error", err)
		return s
	}
	s.Changed = changed
	return s
}

// verifyLost checks the commits of a run that died after its work and whose worktree is lost.
func (x *execution) verifyLost(ctx context.Context, s journal.State) (journal.State, error) {
	if s.Facts.StoppedStage != "" || !x.publishable(s) {
		return s, nil
	}
	base, err := x.c.Repo.Base(ctx, x.run.Base)
	if err != nil {
		return x.handleFault(s, err)
	}
	if x.run.Settings.Publish == journal.PublishMerge {
		merged, err := x.c.Repo.Contains(ctx, base.Commit, s.Tip)
		if err != nil {
			return x.handleFault(s, err)
		}
		if merged { // the run died after the merge
			s.Published, s.Facts.Done = "merged into "+base.Name, true
			return s, nil
		}
	}
	unproved := s.Facts.Retest == nil && x.run.Settings.Checks.Retest == journal.RetestRequire
	if x.publishesOutward(s) || x.needsGate(s) || unproved || s.Facts.Review == nil && x.run.Settings.Review.Agent != "" {
		s.Facts.Publish = &journal.Fault{Kind: journal.FaultLost}
		return s, nil
	}
	x.addSecrets(ctx)
	s.Facts.Policy, err = x.r.policy.CheckFrom(ctx, []string{base.Commit}, s.Tip)
	if err == nil {
		s, err = x.readChecks(ctx, s, base)
	}
	if err != nil {
		return x.handleFault(s, err)
	}
	return s, nil
}

// closeWork imports the last work, runs the commands of `after`, and closes the agent's sandbox. The work does not change after
// that.
func (x *execution) closeWork(ctx context.Context, s journal.State) (journal.State, error) {
	w := x.space
	if w == nil {
		return s, nil
	}
	crashed := s.Facts.Stop == journal.StopCrash
	imported := true
	if w.Tree == nil || w.Tree.Unsaved() || crashed {
		var err error
		if s, imported, err = x.importLast(ctx, s); err != nil {
			return s, err
		}
	}
	if imported && !crashed && !x.stop.Killed {
		s = x.runAfterCommands(ctx, s)
	}
	s.Warn(w.CloseSandbox(ctx)...)
	if (w.Hung || w.Unclosed && ctx.Err() != nil) && x.stop.Is(journal.StopShutdown) && x.run.Kind == journal.KindIssue {
		return s, &deferral{error: errors.New("the sandbox was not closed in time")} // the next start removes it
	}
	return x.describeWork(ctx, s)
}

// importLast imports the work since the last import. What cannot be imported now stays in the worktree.
func (x *execution) importLast(ctx context.Context, s journal.State) (next journal.State, imported bool, err error) {
	w := x.space
	left := w.Import(ctx)
	if left == nil {
		s.Facts.PlaceSignal(w.Work()) // ralph may have died during the import
		return s, true, nil
	}
	s = x.warn(s, fmt.Errorf("the worktree %s stays: %w", w.Dir, left))
	person := s.Facts.Open != nil || s.Facts.Stop == journal.StopDisk // a person has to act first
	waits := w.Tree != nil && (w.Tree.MayRetryImport() || x.stop.Is(journal.StopShutdown) && errors.Is(left, worktree.ErrLate))
	if waits && x.run.Kind == journal.KindIssue && !person {
		return s, false, &deferral{error: left} // the next sweep imports it
	}
	return s, false, nil
}

// describeWork puts the imported work into the state.
func (x *execution) describeWork(ctx context.Context, s journal.State) (journal.State, error) {
	w := x.space
	if w.Last.Tip == "" && w.Tree != nil { // this process has imported nothing
		got, err := w.Tree.Imported(ctx)
		if err != nil {
			return x.handleFault(s, err)
		}
		w.Last = got
	}
	s.Tip, s.Commits, s.WIP, s.Facts.Commits = w.Last.Tip, len(w.Last.Commits), w.Last.WIP, len(w.Last.Commits)
	s.Saved = journal.Saved(w.Last.Earlier)
	s.Facts.DropOtherTips(s.Tip)
	if s.Commits > 0 && x.run.Kind == journal.KindIssue {
		var err error
		s.Facts.Unchanged, err = x.c.Repo.Spans().Unchanged(ctx, x.base.Commit, s.Tip)
		if err != nil && !git.Failed(err) { // git fails for unrelated histories
			return x.handleFault(s, err)
		}
	}
	if links := w.Last.Gitlinks; len(links) > 0 {
		s.Warn(sandboxes.Noticef("%s is a nested repository, so its files are in no commit", strings.Join(links, ", ")))
	}
	if others := w.Last.Others; len(others) > 0 {
		saved := sandboxes.Noticef("commits of other branches, tags or stashes are saved; look with: git log %s", strings.Join(others, " "))
		s.Warn(saved)
	}
	x.result.Commits = w.Last.Commits
	return s, nil
}

// handleFault handles an error of verifying or publishing: a later sweep tries again; after MaxTries the error becomes a fact.
func (x *execution) handleFault(s journal.State, err error) (journal.State, error) {
	away := publish.Outage(err)
	switch {
	case away || x.stop.Is(journal.StopShutdown): // not counted
		return s, &deferral{err, away && !x.stop.OnlyThisRun()}
	case s.Tries+1 < decide.MaxTries && x.run.Kind == journal.KindIssue:
		s.Tries++
		return s, &deferral{err, publish.Unreachable(err)}
	}
	s.Tries = decide.MaxTries
	s.Facts.Publish, s.Facts.Tries = &journal.Fault{Kind: journal.FaultOther, Text: err.Error()}, s.Tries
	return s, nil
}

// rebaseAndCheck rebases the commits if needed, and checks them by policy, gate, retest and review.
func (x *execution) rebaseAndCheck(ctx context.Context, s journal.State) (journal.State, error) {
	if x.space.Tree == nil {
		return s, nil // the user's own branch
	}
	var err error
	if s.Facts.Conflict, err = x.unrelated(ctx, s.Tip); err != nil || s.Facts.Conflict != "" {
		return s, err
	}
	s, err = x.readChecks(ctx, s, x.base)
	if err != nil {
		return s, err
	}
	if x.run.Settings.Publish == journal.PublishMerge && outcome(s) == journal.Succeeded {
		moved, err := x.rebase(ctx, s)
		if err != nil || moved.Facts.Conflict != "" {
			return moved, err
		}
		s = moved
	}
	there, cancel := x.stop.ForRemote(ctx)
	defer cancel()
	if s, err = x.rewriteCommits(there, s); err != nil {
		return s, err
	}
	who := x.space.Tree.Spec().Identity
	if text, err := publish.OtherPeopleWarning(ctx, x.c.Repo, who, x.c.Agents().Mails(), x.base.Commit, s.Tip); err != nil {
		return s, err
	} else if text != "" {
		s.Warn(sandboxes.Notice{Text: text})
	}
	x.addSecrets(ctx)
	if s.Facts.Policy, err = x.r.policy.Check(there, x.space.Tree, x.base.Commit, s.Tip); err != nil || len(s.Facts.Policy) > 0 {
		return s, err
	}
	if outcome(s) != journal.Succeeded {
		return s, nil // they go into a draft
	}
	if s, err = x.verifyTip(ctx, s); err != nil || outcome(s) != journal.Succeeded {
		return s, err
	}
	if _, err = x.retest(ctx, &s); err != nil || outcome(s) != journal.Succeeded {
		return s, err
	}
	_, err = x.review(ctx, &s)
	return s, err
}

// rewriteCommits rewrites the commits to the configured author, committer and trailers, before they are checked.
func (x *execution) rewriteCommits(ctx context.Context, s journal.State) (journal.State, error) {
	acting := len(x.space.Last.ForgeCommands) > 0 && x.publishesOutward(s)
	if !acting && !x.space.Last.Controls && x.space.Tree.Spec().Identity.IsZero() {
		return s, nil
	}
	got, err := x.space.Tree.Finish(ctx, acting)
	if err != nil || got.Tip == s.Tip {
		return s, err
	}
	if acting {
		s = x.warn(s, errors.New("the messages of some commits had keywords or mentions that act on the forge; they were rewritten"))
	}
	if s.Facts.Tip == s.Tip {
		s.Facts.Tip = got.Tip // the files are the same
	}
	if v := s.Facts.Verify; v != nil && v.Tip == s.Tip {
		v.Tip = got.Tip
	}
	s.Tip, x.space.Last = got.Tip, got
	return s, nil
}

// needsGate reports whether the gate has still to pass on a clean checkout of the tip. Even with GateOnWorktree that is so after
// a rebase: the rebased commits have passed no gate in the worktree.
func (x *execution) needsGate(s journal.State) bool {
	c := x.run.Settings.Checks
	return len(c.Gate) > 0 && (c.Clean || s.Tip != s.Facts.Tip) && s.Verified.Tip != s.Tip
}

// verifyTip runs the gate on exactly the tip. It stores each fact before it uses it.
func (x *execution) verifyTip(ctx context.Context, s journal.State) (journal.State, error) {
	if s.Verified.Base != x.base.Commit {
		s.Verified = journal.Verified{}
	}
	if !x.needsGate(s) {
		if v := s.Verified; v.Tip == s.Tip && v.At.Before(x.run.Started) {
			at := v.At.Local().Format(time.DateTime)
			x.events.Emit(journal.Event{Kind: journal.EventSweep, Text: fmt.Sprintf("the gate passed on %.12s at %s and is not run again", v.Tip, at)})
		}
		return s, nil
	}
	want := journal.Verified{Tip: s.Tip, Base: x.base.Commit, Conditions: x.conditions(ctx)}
	s.Verified = journal.Verified{}
	_ = x.save(ctx, s) // on failure the next stage saves again
	got, watch, err := x.runGate(ctx, s)
	if err != nil {
		return s, err
	}
	s.Facts.Verify = &journal.Verification{Tip: s.Tip, Base: x.base.Name, Checks: got.Checks, Setup: got.Setup, Rebase: x.baseMoved}
	s.Facts.Watch = watch
	if s.Facts.Verify.Passed() {
		want.At = time.Now()
		s.Verified = want
	}
	_ = x.save(ctx, s) // on failure the next stage saves again
	return s, nil
}

// verifyWork runs the gate on a clean checkout inside the loop, while the agent can still commit forgotten files, and then the
// retest and the review. If it cannot run the gate, it leaves that to the stage Verify.
func (x *execution) verifyWork(ctx context.Context, s *journal.State) (advice string) {
	if c := x.run.Settings.Checks; x.space.Tree == nil || !c.Clean || len(c.Gate) == 0 {
		return x.judgeWork(ctx, s)
	}
	if s.Facts.DropOtherTips(s.Tip); s.Facts.Verify == nil {
		next, err := x.verifyTip(ctx, *s)
		if err != nil {
			if !x.stop.Stopped(ctx) {
				x.log.Warn("work not verified yet", "error", err)
			}
			return ""
		}
		*s = next
	}
	v := s.Facts.Verify
	if v == nil {
		return ""
	}
	if !v.Passed() {
		return feedback.Checkout(v.Checks, x.uncommitted(ctx, s.Tip))
	}
	if advice := feedback.Checks(*s, x.run.Settings.Checks.Files, x.base.Name); advice != "" {
		return advice
	}
	return x.judgeWork(ctx, s)
}

// uncommitted lists the first 20 files that the agent changed and did not commit.
func (x *execution) uncommitted(ctx context.Context, tip string) []string {
	wip := x.space.Last.WIP
	if wip == "" {
		return nil
	}
	changes, err := x.c.Repo.Changes(ctx, []string{tip}, wip, func(string, []byte) {})
	if err != nil {
		x.log.Debug("uncommitted changes not listed", "error", err)
	}
	if len(changes.Paths) > 20 {
		return append(changes.Paths[:20:20], "…")
	}
	return changes.Paths
}
