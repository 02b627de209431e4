package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// result is what became of one issue that a sweep took.
type result struct {
	issue       tracker.Issue
	rec         Record
	skip        string   // it was not worked, and why
	err         error    // it was not worked because something is broken
	closed      bool     // the issue is closed now
	unavailable error    // nothing more can be worked for now
	finished    []Record // runs of the issue that had been left, and are over now
}

// worker takes one issue the whole way: claim, freeze, worktree, sandbox, loop, publish, report, release.
// It belongs to one goroutine; only its stopper is shared.
type worker struct {
	p         *Pool
	issue     tracker.Issue // the frozen snapshot
	rec       Record
	claim     *worktree.Claim
	stop      *stopper
	kill      context.CancelCauseFunc // ends the run at once; nil while it cannot be
	files     *runFiles
	log       zerolog.Logger
	follow    *tracker.FollowUp // the request that needs another run; nil: the issue's own
	following bool              // the run is for a request, here or before it died
	require   []string          // the labels that it was picked up by; not written while the run is watched
	owner     string            // of the claim: no other worker, of this or another process, has the same
	talk      talk              // the loop\'s observer only
	gated     Gated             // what the loop's gate has passed for
	hidden    int               // invisible characters removed from the issue's text
	closed    bool
	borrowed  bool     // the claim belongs to another worker, which goes on
	died      bool     // ralph died during this run; it is being brought to its end
	feedback  string   // what became of the run before, for the agent
	finished  []Record // runs before this one that were left, and are over now
	again     string   // why this is a new start; empty for a first one and for retries
	away      error    // what has kept the run from its end, or its beginning, and would keep others: tracker, remote, agent, sandbox
	left      error    // why the run's end is left to the next sweep
}

// work works one issue. soft ends when nothing new may be started, hard when everything has to end.
func (p *Pool) work(soft, hard context.Context, t task, keys []string) result {
	w := p.newWorker(t.issue)
	w.follow, w.following, w.require = t.follow, t.follow != nil, p.cfg.Require
	if soft.Err() != nil {
		return w.skipped("the sweep was stopped")
	}
	if err := w.begin(hard); err != nil {
		return w.refused(hard, err)
	}
	if reason, err := w.freeze(hard, keys); reason != "" || err != nil {
		return w.givenUp(hard, reason, err)
	}
	run, cancel := context.WithCancelCause(hard)
	defer cancel(nil)
	unlink := context.AfterFunc(soft, func() { w.stop.stop(errStopped) })
	defer unlink()
	w.kill = cancel
	kept := w.keep(run, cancel)
	w.execute(run)
	cancel(nil)
	<-kept
	return result{issue: w.issue, rec: w.rec, closed: w.closed, unavailable: w.unavailable()}
}

func (p *Pool) newWorker(issue tracker.Issue) *worker {
	now := time.Now()
	run := newRun(now)
	return &worker{
		p: p, issue: issue, stop: newStopper(), owner: fmt.Sprintf("%s/%d/%s", p.host, os.Getpid(), run),
		log: p.cfg.Log.With().Str("run", run).Str("issue", issue.Key).Logger(),
		rec: Record{
			Run: run, Key: issue.Key, Title: issue.Title, URL: issue.URL, Hash: hash(issue), Attempt: 1,
			Host: p.host, PID: os.Getpid(), Process: p.process, Started: now,
			Branch: p.cfg.BranchPrefix + issue.Key, Agent: p.cfg.Agent.Name(), Model: p.cfg.Options.Model, Sandbox: p.cfg.Sandboxes.Name(),
			Dir: filepath.Join(p.cfg.StateDir, "runs", issue.Key, run),
		},
	}
}

// begin writes the intent and takes the claim.
func (w *worker) begin(ctx context.Context) error {
	w.rec.Step = StepClaim
	if err := w.p.cfg.Journal.begin(ctx, &w.rec); err != nil {
		return err
	}
	w.emit(Event{Kind: EventStep, Step: StepClaim})
	claim, err := w.p.cfg.Repo.Claim(ctx, w.rec.Key, w.holder(), w.p.cfg.ClaimLife)
	w.claim = claim
	return err
}

func (w *worker) holder() worktree.Holder {
	return worktree.Holder{Owner: w.owner, Run: w.rec.Run, Hash: w.rec.Hash}
}

// refused ends a run that could not claim.
func (w *worker) refused(ctx context.Context, err error) result {
	ferr := w.p.cfg.Journal.forget(ctx, w.rec.Run)
	var taken *worktree.TakenError
	if errors.As(err, &taken) && ferr == nil {
		return w.skipped(fmt.Sprintf("claimed by run %s on %s", taken.Holder.Run, taken.Holder.Host))
	}
	return w.broken(errors.Join(err, ferr))
}

// freeze settles what an earlier run of the issue left, then takes the snapshot that this run works from. A reason
// says that the issue does not qualify any more.
func (w *worker) freeze(ctx context.Context, keys []string) (string, error) {
	concluded, err := w.p.settleKey(ctx, w)
	if err != nil {
		return "", err
	}
	if !concluded {
		concluded, err = w.p.onBehalf(ctx, w.rec.Key, w.claim)
	}
	if concluded || err != nil {
		return "was finished from an earlier run that had died", err
	}
	if d, ok := w.claim.Decided(); ok {
		return fmt.Sprintf("run %s has ended, and is still to be reported", d.Done.Run), nil
	}
	issue, err := w.p.cfg.Tracker.Get(ctx, w.rec.Key)
	if errors.Is(err, tracker.ErrNotFound) {
		return "is gone from the backlog", nil
	}
	if err != nil {
		return "", err
	}
	v := view{pool: w.p, keys: keys, now: time.Now(), done: map[string]worktree.Done{}}
	if d, ok := w.claim.Done(); ok {
		ours, err := w.p.cfg.Journal.has(ctx, d.Run)
		if err != nil {
			return "", err
		}
		if !ours {
			v.done[w.rec.Key] = d
		}
	}
	runs, err := w.p.cfg.Journal.Runs(ctx, w.rec.Key)
	if err != nil {
		return "", err
	}
	if last, ok := lastEnded(runs); ok {
		v.last = map[string]Record{w.rec.Key: last}
	}
	if last, ok := lastEnded(runs); ok && last.Verdict.Final && w.follow == nil {
		w.again = fmt.Sprintf("run `%s` had ended as %s", last.Run, last.Verdict.Outcome)
	}
	if w.follow != nil {
		if !issue.Open {
			return "closed", nil
		}
		if _, ok := tracker.As[tracker.Approver](w.p.cfg.Tracker); ok && !approvedText(issue, runs, w.claim) {
			return fmt.Sprintf("its text is not what was approved; read it and put the label %s on again", w.p.cfg.Require[0]), nil
		}
		return "", w.take(ctx, issue, nextAttempt(runs), feedbackOf(*w.follow, w.p.cfg.Base))
	}
	if reason := v.whyNot(issue); reason != "" {
		return reason, nil
	}
	if approver, ok := tracker.As[tracker.Approver](w.p.cfg.Tracker); ok {
		_, unapproved := approver.Approved(ctx, issue, w.p.cfg.Require[0])
		if isAway(unapproved) {
			return "", unapproved
		}
		if unapproved != nil {
			return unapproved.Error(), nil //nolint:nilerr // it is the reason, and no failure
		}
	}
	return "", w.take(ctx, issue, nextAttempt(runs), earlier(runs))
}

// take freezes the issue as it is now, and shows people that it is being worked.
func (w *worker) take(ctx context.Context, issue tracker.Issue, attempt int, feedback string) error {
	w.issue = issue
	w.rec.Title, w.rec.URL, w.rec.Hash = issue.Title, issue.URL, hash(issue)
	w.rec.Attempt, w.feedback = attempt, feedback
	var err error
	if w.files, err = newRunFiles(w.rec.Dir, w.p.secrets); err != nil {
		return err
	}
	if label := w.p.cfg.Labels.Claimed; label != "" {
		return w.p.cfg.Tracker.Change(ctx, w.rec.Key, tracker.Change{AddLabels: []string{label}})
	}
	return nil
}

// givenUp ends a run that claimed an issue and did not start on it.
func (w *worker) givenUp(ctx context.Context, reason string, err error) result {
	err = errors.Join(err, w.claim.Release(ctx), w.p.cfg.Journal.forget(ctx, w.rec.Run))
	if err != nil {
		return w.broken(err)
	}
	return w.skipped(reason)
}

// broken is an issue that could not be worked, through no fault of its own or the agent's.
func (w *worker) broken(err error) result {
	r := w.skipped(strings.ReplaceAll(err.Error(), "\n", "; "))
	r.err = err
	if isAway(err) {
		r.unavailable = err
	}
	return r
}

func (w *worker) skipped(reason string) result {
	return result{issue: w.issue, rec: w.rec, skip: reason, finished: w.finished}
}

// execute does everything between the claim and its release. From here on the run is on record, whatever happens.
func (w *worker) execute(ctx context.Context) {
	w.emit(Event{Kind: EventStarted, Branch: w.rec.Branch})
	s, err := w.open(ctx)
	if s != nil {
		defer s.disk.close()
	}
	var lr loop.Result
	switch {
	case err != nil:
		w.rec.Verdict = Verdict{Outcome: Failed, Reason: err.Error()}
		if unusable(err) { // such as a login that has ended during the sweep
			w.rec.Verdict.Outcome, w.away = AgentUnavailable, err
		}
		if w.stop.cause() != nil || ctx.Err() != nil {
			w.interrupted()
		}
	default:
		lr = w.loop(ctx, s)
		w.rec.Verdict = w.judge(lr)
		w.rec.Verdict.Gated = w.gated
	}
	if w.follow != nil {
		w.rec.Verdict.FollowUp = string(w.follow.Reason)
		w.rec.Verdict.Request = Request{Number: w.follow.Request.Number, URL: w.follow.Request.URL, Draft: w.follow.Request.Draft}
	}
	w.conclude(ctx, s)
}

// unavailable tells the sweep to start nothing more.
func (w *worker) unavailable() error {
	if w.rec.Verdict.Outcome == AgentUnavailable && w.away == nil {
		return fmt.Errorf("agent %s is unavailable: %s", w.rec.Agent, w.rec.Verdict.Reason)
	}
	return w.away
}

// step writes the next step to the journal.
func (w *worker) step(ctx context.Context, s Step) error {
	w.rec.Step = s
	if err := w.p.cfg.Journal.save(context.WithoutCancel(ctx), &w.rec); err != nil {
		return err
	}
	w.emit(Event{Kind: EventStep, Step: s})
	return nil
}

func (w *worker) emit(e Event) {
	e.Time = time.Now()
	e.Run, e.Key, e.Title, e.Attempt = w.rec.Run, w.rec.Key, w.rec.Title, w.rec.Attempt
	if w.files != nil {
		w.files.event(e)
	}
	w.p.emit(e)
}
