package pool

import (
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// publish makes the commits of a run visible. A failure changes the verdict; the commits are safe in every case.
func (w *worker) publish(ctx context.Context, s *session) {
	v := &w.rec.Verdict
	var err error
	switch {
	case w.p.cfg.Publish == PublishMerge && v.Outcome == Succeeded:
		err = w.merge(ctx, s)
	case w.p.cfg.Publish == PublishBranch && w.p.cfg.Repo.Remote() != "":
		if err = s.tree.Push(ctx, v.Tip); err == nil {
			v.Published = fmt.Sprintf("pushed to %s", w.p.cfg.Repo.Remote())
		}
	}
	switch {
	case err == nil:
	case v.Outcome == GateFailed: // the draft could not be shown; that is no other outcome
		w.warn(fmt.Errorf("publish: %w", err))
	case errors.Is(err, errGate):
		v.Outcome, v.Counted, v.Reason = GateFailed, true, err.Error()
	case errors.Is(err, worktree.ErrConflict):
		v.Outcome, v.Counted, v.Reason = Failed, true, err.Error()
	default:
		v.Outcome, v.Reason = Failed, "publish: "+err.Error()
	}
}

var errGate = errors.New("the gate does not pass")

// merges is how often a base that moves away is followed.
const merges = 5

// merge brings the commits into the base branch: one run at a time, rebased onto what the base is by then, and gated
// again if that changed anything.
func (w *worker) merge(ctx context.Context, s *session) error {
	unlock, err := w.p.cfg.Repo.LockMerges(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	v := &w.rec.Verdict
	for range merges {
		base, err := w.p.cfg.Repo.Base(ctx, s.base.Ref)
		if err != nil {
			return err
		}
		if base.Commit != s.base.Commit {
			if v.Tip, err = s.tree.Rebase(ctx, base); err != nil {
				return err
			}
			s.base = base
			if err := w.gateAgain(ctx, s); err != nil {
				return err
			}
		}
		title, _ := tracker.Clean(w.issue.Title)
		into, err := w.p.cfg.Repo.Merge(ctx, base, v.Tip, fmt.Sprintf("Merge %s: %s", w.rec.Branch, title))
		if errors.Is(err, worktree.ErrMoved) {
			continue
		}
		if err != nil {
			return err
		}
		v.Published = fmt.Sprintf("merged into %s as %.12s", base.Name, into)
		return nil
	}
	return fmt.Errorf("merge into %s: it moved %d times meanwhile: %w", s.base.Name, merges, worktree.ErrMoved)
}

func (w *worker) gateAgain(ctx context.Context, s *session) error {
	if len(w.p.cfg.Gate) == 0 {
		return nil
	}
	if err := w.openSandbox(ctx, s); err != nil {
		return err
	}
	checks, err := loop.RunGate(ctx, loop.Config{
		Sandbox: s.sandbox, Gate: w.p.cfg.Gate, Timers: w.p.cfg.Timers, Interrupt: w.stop.done, Observe: w.observe,
		Stream: w.files.stream,
	})
	if err != nil {
		return err
	}
	w.rec.Verdict.Gate, w.rec.Verdict.GateRan = checks, true
	for _, c := range checks {
		if !c.Passed() {
			return fmt.Errorf("%w after the rebase onto %s: %s: exit status %d", errGate, s.base.Name, c.Command, c.ExitCode)
		}
	}
	return nil
}
