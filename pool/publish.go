package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// publish makes the commits of a run visible, and notes in the journal that it has. What the commits are to blame for
// changes the verdict; an error is a fault that may pass, and leaves the verdict as it was. The commits are safe in every
// case. It may be called again after a crash: then s is nil where the worktree is gone.
func (w *worker) publish(ctx context.Context, s *session) error {
	v := &w.rec.Verdict
	if v.Published != "" {
		return nil
	}
	err := w.publishOut(ctx, s)
	var blocked *policyError
	switch {
	case err == nil:
		v.Tries = 0
		if err := w.step(ctx, StepPublish); err != nil {
			w.warn(err)
		}
	case errors.As(err, &blocked):
		v.Outcome, v.Counted, v.Reason = PolicyBlocked, false, err.Error()
	case ctx.Err() == nil && (isAway(err) || errors.Is(w.stop.cause(), errStopped)):
		return err
	case v.Outcome == GateFailed: // the draft could not be shown; that is no other outcome
		w.warn(fmt.Errorf("publish: %w", err))
	case w.stop.cause() != nil || ctx.Err() != nil:
		w.interrupted()
	case errors.Is(err, errNoTree):
		v.Outcome, v.Reason = Interrupted, err.Error()
	case errors.Is(err, errGate):
		v.Outcome, v.Counted, v.Reason = GateFailed, true, err.Error()
	case errors.Is(err, worktree.ErrConflict):
		v.Outcome, v.Counted, v.Reason = Failed, true, err.Error()
	default:
		return err
	}
	return nil
}

// publishOut does what Publish says. Before anything leaves the worktree's own branch every commit is looked at, and also
// before a person is told to merge what stays there.
func (w *worker) publishOut(ctx context.Context, s *session) error {
	v := &w.rec.Verdict
	switch {
	case w.outward():
	case v.Outcome == Succeeded:
		return w.mergeable(ctx, s)
	default:
		return nil
	}
	if s != nil {
		if err := w.p.allowed(ctx, s.tree, s.base.Commit, v.Tip); err != nil {
			return err
		}
	}
	switch w.terms().Publish {
	case PublishMerge:
		return w.merge(ctx, s)
	case PublishRequest:
		return w.request(ctx, s)
	case PublishBranch, PublishNone:
	}
	return w.push(ctx, s)
}

// mergeable looks at commits that leave no further than to a local branch. A nil session is that of a run that died.
func (w *worker) mergeable(ctx context.Context, s *session) error {
	if s != nil {
		return w.p.allowed(ctx, s.tree, s.base.Commit, w.rec.Verdict.Tip)
	}
	base, err := w.p.cfg.Repo.Base(ctx, w.baseRef(nil))
	if err != nil {
		return err
	}
	return w.p.mayBring(ctx, []string{base.Commit}, w.rec.Verdict.Tip)
}

// outward reports whether publishing takes the commits out of the worktree's own branch.
func (w *worker) outward() bool {
	mode := w.terms().Publish
	return mode == PublishMerge && w.rec.Verdict.Outcome == Succeeded ||
		(mode == PublishBranch || mode == PublishRequest) && w.p.cfg.Repo.Remote() != ""
}

var (
	errGate   = errors.New("the gate does not pass")
	errNoTree = errors.New("ralph died before it had published, and the worktree is gone; the commits are on the branch")
)

func (w *worker) push(ctx context.Context, s *session) error {
	if s == nil {
		return errNoTree
	}
	if err := s.tree.Push(ctx, w.rec.Verdict.Tip); err != nil {
		return err
	}
	w.rec.Verdict.Published = fmt.Sprintf("pushed to %s", w.p.cfg.Repo.Remote())
	return nil
}

// merges is how often a base that moves away is followed.
const merges = 5

// merge brings the commits into the base branch: one run at a time, rebased onto what the base is by then. Only what
// has passed the gate on this very base is merged, whatever happened to ralph in between.
func (w *worker) merge(ctx context.Context, s *session) error {
	waiting, enough := context.WithCancelCause(ctx)
	go func() { // another merge's gate may take long
		select {
		case <-w.stop.done:
			enough(w.stop.cause())
		case <-waiting.Done():
		}
	}()
	unlock, err := w.p.cfg.Repo.LockMerges(waiting)
	enough(nil)
	if err != nil {
		return err
	}
	defer unlock()
	v := &w.rec.Verdict
	for range merges {
		base, err := w.p.cfg.Repo.Base(ctx, w.baseRef(s))
		if err != nil {
			return err
		}
		if merged, err := w.p.cfg.Repo.Contains(ctx, base.Commit, v.Tip); err != nil || merged {
			v.Published = "merged into " + base.Name
			return err
		}
		if s == nil {
			return errNoTree
		}
		if err := w.fit(ctx, s, base); err != nil {
			return err
		}
		// What the gate or a rebase has made since the verdict has been looked at by nobody yet.
		if err := w.p.allowed(ctx, s.tree, base.Commit, v.Tip); err != nil {
			return err
		}
		if err := s.accept(ctx); err != nil {
			return err
		}
		if !w.fence(ctx) {
			return errClaimLost
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
	return fmt.Errorf("merge: the base moved %d times meanwhile: %w", merges, worktree.ErrMoved)
}

// baseRef is the branch that the run was made for.
func (w *worker) baseRef(s *session) string {
	if s != nil {
		return s.base.Ref
	}
	return w.p.cfg.Base
}

// fit brings the commits onto base and through the gate there. Each fact stands in the journal before it is used.
func (w *worker) fit(ctx context.Context, s *session, base worktree.Base) error {
	v := &w.rec.Verdict
	work, err := s.handBack(ctx)
	if err != nil {
		return err
	}
	v.Tip = work.Tip
	if base.Commit != s.base.Commit {
		s.saved = cmp.Or(s.saved, s.work.WIP)
		if v.Tip, err = s.tree.Rebase(ctx, base); err != nil {
			return err
		}
		s.base = base
	}
	want := Gated{Tip: v.Tip, Base: base.Commit}
	if v.Gated == want {
		return nil
	}
	v.Gated = Gated{}
	if err := w.step(ctx, StepPublish); err != nil {
		return err
	}
	if err := w.gateAgain(ctx, s); err != nil {
		return err
	}
	v.Gated = want
	return w.step(ctx, StepPublish)
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
