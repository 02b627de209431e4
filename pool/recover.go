package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/internal/tempdir"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// recoverAll takes care of every run of this host whose process has died: it ends what still runs, takes the commits
// back, finishes what had been decided, and gives the claim up. What another live ralph is taking care of is left. A run
// that cannot be recovered now is told, and stops nothing else; away says that it could not be published for a reason that
// may meet every other run too, whose agents would work for nothing.
func (p *Pool) recoverAll(ctx context.Context) (r recovery, err error) {
	open, err := p.cfg.Journal.Open(ctx)
	if err != nil {
		return r, err
	}
	note := func(key string, err error) {
		if err == nil {
			return
		}
		var unpublished *unpublishedError
		if errors.As(err, &unpublished) && isAway(err) {
			r.away = err
		}
		s := Skip{tracker.Issue{Key: key}, "recover: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
		r.broken = append(r.broken, s)
		p.emit(Event{Kind: EventProblem, Key: key, Text: key + ": " + s.Reason})
	}
	for _, rec := range open {
		if p.dead(rec) || rec.Host != p.host && p.abandoned(ctx, rec) {
			ended, err := p.recoverRun(ctx, rec)
			r.finished = append(r.finished, ended...)
			note(rec.Key, err)
		}
	}
	return r, p.recoverStrays(ctx, open, note)
}

// recovery is what taking care of dead runs came to.
type recovery struct {
	finished []Record // runs that had their verdict, and are over now
	broken   []Skip
	away     error
}

// dead reports that no process works at the run: it was left for a later sweep, or its process on this host is gone.
func (p *Pool) dead(r Record) bool {
	return r.PID == 0 || r.Host == p.host && !proc.Alive(r.PID, r.Process)
}

// abandoned reports that nobody holds the claim of a run of another host any more. The journal is on this machine: it has
// been given another name since.
func (p *Pool) abandoned(ctx context.Context, r Record) bool {
	held, _, err := p.cfg.Repo.Claims(ctx)
	c, ok := held[r.Key]
	return err == nil && (!ok || c.Gone || c.Holder.Run != r.Run)
}

// unpublishedError is a run of which the commits wait to be published.
type unpublishedError struct{ error }

func (e *unpublishedError) Unwrap() error { return e.error }

func (p *Pool) recoverRun(ctx context.Context, rec Record) (ended []Record, err error) {
	w := p.newWorker(tracker.Issue{Key: rec.Key, Title: rec.Title, URL: rec.URL})
	w.rec.Run, w.rec.Hash = rec.Run, rec.Hash
	claim, err := p.cfg.Repo.Claim(ctx, rec.Key, w.holder(), p.cfg.ClaimLife)
	var taken *worktree.TakenError
	switch {
	case errors.As(err, &taken):
		ours, err := p.knows(ctx, taken.Holder.Run)
		if err != nil || ours {
			return nil, err // a ralph on this host has the issue, and settles the run itself
		}
	case errors.Is(err, worktree.ErrRemote):
		p.emit(Event{Kind: EventWarning, Run: rec.Run, Key: rec.Key, Text: "not recovered yet: " + err.Error()})
		return nil, nil
	case err != nil:
		return nil, err
	}
	now, err := p.cfg.Journal.Runs(ctx, rec.Key)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(now, func(r Record) bool { return r.Run == rec.Run })
	if i < 0 || !now[i].Ended.IsZero() || !p.dead(now[i]) && now[i].Host == p.host { // somebody else was faster
		if claim == nil {
			return nil, nil
		}
		return nil, claim.Release(ctx)
	}
	ended, _, err = p.settle(ctx, now[i], claim, true)
	return ended, err
}

func (p *Pool) knows(ctx context.Context, run string) (bool, error) {
	runs, err := p.cfg.Journal.Runs(ctx, "")
	return slices.ContainsFunc(runs, func(r Record) bool { return r.Run == run }), err
}

// settleKey settles the dead runs of an issue that the run self has just claimed.
func (p *Pool) settleKey(ctx context.Context, w *worker) (concluded bool, err error) {
	runs, err := p.cfg.Journal.Runs(ctx, w.rec.Key)
	if err != nil {
		return false, err
	}
	for _, rec := range runs {
		if rec.Run == w.rec.Run || !rec.Ended.IsZero() || !p.dead(rec) {
			continue
		}
		ended, done, err := p.settle(ctx, rec, w.claim, false)
		w.finished = append(w.finished, ended...)
		if err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// settle brings one dead run to its end. A run that had its verdict is concluded from the step it stood at; any other
// was interrupted. A nil claim means that the issue is somebody else's by now: then nothing is said outside. A run that
// keeps its verdict is returned when it is over; the others are for a sweep to work again.
func (p *Pool) settle(ctx context.Context, rec Record, claim *worktree.Claim, release bool) (ended []Record, concluded bool, err error) {
	if err := p.reap(ctx, rec.Run); err != nil {
		return nil, false, err
	}
	if claim != nil && overtaken(rec, claim) {
		if release {
			if err := claim.Release(ctx); err != nil {
				return nil, false, err
			}
		}
		claim = nil
	}
	w := p.newWorker(tracker.Issue{Key: rec.Key, Title: rec.Title, URL: rec.URL})
	w.rec, w.claim, w.died, w.following = rec, claim, true, rec.Verdict.FollowUp != ""
	w.require = w.terms().Require
	w.log = p.cfg.Log.With().Str("run", rec.Run).Str("issue", rec.Key).Logger()
	if w.files, err = newRunFiles(rec.Dir, p.secrets); err != nil {
		return nil, false, err
	}
	issue, err := p.cfg.Tracker.Get(ctx, rec.Key)
	switch {
	case err == nil:
		w.issue = issue
	case isAway(err): // it says nothing about the run
		w.rec.PID = 0
		w.leaveClaim(ctx)
		w.files.close()
		return nil, false, errors.Join(err, p.cfg.Journal.save(ctx, &w.rec))
	}
	s, err := p.sessionOf(ctx, rec.Run)
	if err != nil {
		return nil, false, err
	}
	how := "ralph had died at step "
	if rec.PID == 0 {
		how = "was left at step "
	}
	defer p.emit(Event{Kind: EventRecovered, Run: rec.Run, Key: rec.Key, Title: rec.Title, Text: how + string(rec.Step)})
	if claim == nil {
		w.stop.stop(errClaimLost)
	}
	decided := rec.Verdict.Outcome != "" && slices.Index(Steps(), rec.Step) >= slices.Index(Steps(), StepPublish)
	switch {
	case !decided:
		w.rec.Verdict = Verdict{Outcome: Interrupted, Reason: fmt.Sprintf("ralph died at step %s", rec.Step)}
		w.borrowed = !release
		w.conclude(ctx, s)
	case rec.Step == StepPublish && claim == nil:
		w.conclude(ctx, s)
	case rec.Step == StepPublish: // which may take a gate's time
		run, cancel := context.WithCancelCause(ctx)
		w.kill = cancel
		if s != nil {
			s.disk = w.account(run, s.tree)
			defer s.disk.close()
		}
		kept := w.keep(run, cancel)
		w.conclude(run, s)
		cancel(nil)
		<-kept
	default:
		w.rec.Verdict.Warnings = append(w.rec.Verdict.Warnings, s.close(ctx)...)
		w.tell(ctx)
	}
	if w.left != nil && w.rec.Step == StepPublish {
		return nil, decided, &unpublishedError{w.left}
	}
	if decided && w.left == nil && w.rec.Verdict.Outcome != Interrupted {
		ended = []Record{w.rec}
	}
	return ended, decided, w.left
}

// reap ends what a dead run has left running.
func (p *Pool) reap(ctx context.Context, run string) error {
	if err := proc.KillMarked(ctx, run); err != nil {
		return err
	}
	if r, ok := p.cfg.Sandboxes.(sandboxes.Reaper); ok {
		if err := r.Reap(ctx, run); err != nil {
			return err
		}
	}
	return tempdir.RemoveRun(run)
}

// sessionOf finds the worktree of a run; nil if there is none.
func (p *Pool) sessionOf(ctx context.Context, run string) (*session, error) {
	trees, err := p.cfg.Repo.Trees(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range trees {
		if t.Spec().Run == run {
			return &session{tree: t, base: t.Spec().Base}, nil
		}
	}
	return nil, nil
}

// recoverStrays removes what no journal knows: worktrees and claims of runs whose record was lost.
func (p *Pool) recoverStrays(ctx context.Context, open []Record, note func(key string, err error)) error {
	trees, err := p.cfg.Repo.Trees(ctx)
	if err != nil {
		note("worktrees", err) // the others are still returned
	}
	claims, _, err := p.cfg.Repo.Claims(ctx)
	if errors.Is(err, worktree.ErrRemote) {
		return nil // the listing that follows says so
	}
	if err != nil {
		return err
	}
	for _, t := range trees {
		spec := t.Spec()
		c, claimed := claims[spec.Key]
		if claimed && !c.Gone || slices.ContainsFunc(open, func(r Record) bool { return r.Run == spec.Run }) {
			continue
		}
		if err := p.reap(ctx, spec.Run); err != nil {
			note(spec.Key, err)
			continue
		}
		for _, warning := range (&session{tree: t, base: spec.Base}).close(ctx) {
			p.emit(Event{Kind: EventWarning, Run: spec.Run, Key: spec.Key, Text: warning})
		}
	}
	for key, c := range claims {
		if c.Gone {
			note(key, p.releaseStray(ctx, key))
		}
	}
	return nil
}

// releaseStray gives up the claim of a holder that is gone.
func (p *Pool) releaseStray(ctx context.Context, key string) error {
	w := p.newWorker(tracker.Issue{Key: key})
	claim, err := p.cfg.Repo.Claim(ctx, key, w.holder(), p.cfg.ClaimLife)
	if err == nil {
		_, err = p.onBehalf(ctx, key, claim)
		err = errors.Join(err, claim.Release(ctx)) // of what is finished nothing is left to release
	}
	if errors.Is(err, worktree.ErrTaken) || isAway(err) {
		return nil
	}
	return err
}
