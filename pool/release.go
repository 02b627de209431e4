package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// rest is what a run that has come to its end has still to tell. It stands in the claim, so that another clone of the
// repository can do it for a ralph that dies before it has.
type rest struct {
	Report string         `json:"report,omitempty"` // empty: nothing is said
	Proof  string         `json:"proof,omitempty"`  // of the report, see tracker.Prover
	Change tracker.Change `json:"change"`
}

// pledge writes the run's end into the claim before anything of it shows: from here on nobody works the issue again
// because of this run. Only ends that are final need it: after any other the issue is worked again anyway. Nor do claims
// that nobody but this repository's journal has to do with.
func (w *worker) pledge(ctx context.Context, report string) error {
	if !w.rec.Verdict.Final || w.borrowed || w.p.cfg.Repo.Remote() == "" {
		return nil
	}
	if d, ok := w.claim.Decided(); ok && d.Done.Run == w.rec.Run {
		return nil
	}
	tell := rest{Report: report, Change: w.change()}
	if p, ok := tracker.As[tracker.Prover](w.p.cfg.Tracker); ok && report != "" {
		tell.Proof = p.Proof(w.rec.Key, w.rec.Run)
	}
	left, err := json.Marshal(tell)
	if err != nil {
		return err
	}
	return w.claim.Decide(ctx, worktree.Decided{Done: w.done(), Rest: left})
}

// done is what stands in the claim's place when all is over.
func (w *worker) done() worktree.Done {
	v := w.rec.Verdict
	return worktree.Done{
		Run: w.rec.Run, Host: w.rec.Host, Outcome: string(v.Outcome), Hash: w.rec.Hash, Tip: v.Tip, At: time.Now(),
	}
}

// release gives the claim up. What is finished leaves a record in its place, so that another clone of the repository,
// whose backlog does not show it yet, does not work the issue again.
func (w *worker) release(ctx context.Context) error {
	switch {
	case w.borrowed:
		return nil
	case !w.rec.Verdict.Final:
		return w.claim.Release(ctx)
	}
	return w.claim.Finish(ctx, w.done())
}

// onBehalf does what a dead run that this host has no record of has left to do, as its claim says. It reports whether
// there was such a run; the claim is given up then. What the tracker does not take is not tried for ever.
func (p *Pool) onBehalf(ctx context.Context, key string, claim *worktree.Claim) (finished bool, err error) {
	d, ok := claim.Decided()
	if !ok {
		return false, nil
	}
	if ours, err := p.cfg.Journal.unended(ctx, d.Done.Run); err != nil || ours {
		return false, err // its own record leads it to its end
	}
	// That the tracker answers for the issue tells a tracker that is away from one that does not take this.
	if _, err := p.cfg.Tracker.Get(ctx, key); isAway(err) {
		return false, err
	}
	told := p.tellRest(ctx, key, d)
	var away *tracker.UnavailableError
	if errors.As(told, &away) {
		return false, told
	}
	if err := claim.Finish(ctx, d.Done); err != nil {
		return false, err
	}
	text := fmt.Sprintf("ralph had died on %s after its run was %s", d.Done.Host, d.Done.Outcome)
	if told != nil {
		text += "; not all of it could be told: " + told.Error()
	}
	p.emit(Event{Kind: EventRecovered, Run: d.Done.Run, Key: key, Text: text})
	return true, nil
}

func (p *Pool) tellRest(ctx context.Context, key string, d worktree.Decided) (err error) {
	var left rest
	if err := json.Unmarshal(d.Rest, &left); err != nil {
		return fmt.Errorf("its claim does not say what: %w", err)
	}
	if left.Report != "" {
		err = p.cfg.Tracker.Report(ctx, key, tracker.Report{Run: d.Done.Run, Body: left.Report, Proof: left.Proof})
	}
	return errors.Join(err, p.cfg.Tracker.Change(ctx, key, left.Change))
}

// overtaken reports that another run has had the issue since: what rec has left to tell is not true any more, or has
// been told on its behalf.
func overtaken(rec Record, claim *worktree.Claim) bool {
	if d, ok := claim.Decided(); ok && d.Done.Run != rec.Run && d.Done.At.After(rec.Started) {
		return true
	}
	d, ok := claim.Done()
	return ok && (d.Run == rec.Run || d.At.After(rec.Started))
}
