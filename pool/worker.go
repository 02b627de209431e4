package pool

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/claims"
	"github.com/ralph-pool/ralph/pool/internal/command"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/pool/workspace"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/base"
)

// Worker works one issue for each call of Work. It is safe for concurrent use. Make one with NewWorker.
type Worker struct {
	c               Config // with its defaults
	runner          *run.Runner
	choices         []agents.Choice // all agents
	disk            *disk.Guard
	bus             *journal.Bus
	planner         *backlog.Planner
	taker           *claims.Taker
	reportWaitAfter time.Duration // how long a wait for the remote may last before an event reports it
	commands        *command.Handler
	lifetime        context.Context //nolint:containedctx // ends with Kill
	kill            context.CancelCauseFunc

	mu      sync.Mutex
	running map[string][]*runHandle // guarded by mu; by key, in order of registration
}

// Running is an issue that is being worked.
type Running struct {
	Key, Run, Title string
	Started         time.Time
}

// NewWorker checks the whole configuration and makes a worker. It starts nothing.
func NewWorker(c Config) (*Worker, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	w := &Worker{c: c, reportWaitAfter: 10 * time.Second, bus: journal.NewBus(c.Observe), running: map[string][]*runHandle{}}
	w.lifetime, w.kill = context.WithCancelCause(context.Background())
	also := c.Run.Emit
	c.Run.MinFree, c.Run.Emit = c.MinFree, func(e journal.Event) {
		if also != nil {
			also(e)
		}
		w.bus.Emit(e)
	}
	var err error
	if w.runner, err = run.New(c.Run); err != nil {
		return nil, err
	}
	w.c.Run, w.disk = w.runner.Config(), w.runner.Spaces().Disk
	w.choices = w.c.Run.Agents().Choices()
	source := claims.Slow{Source: w.c.Claims}
	w.taker = &claims.Taker{
		Source: source, Run: w.c.Run, Spaces: w.runner.Spaces(), Host: w.runner.Host(), Require: w.c.Require, Dead: w.runner.Dead, Emit: w.emit,
	}
	w.planner = &backlog.Planner{
		Run: w.c.Run, Claims: source.Claims, Full: w.runner.Full,
		Index:   &schedule.Index{Git: w.c.Run.Repo.Git(), Prefix: w.c.BranchPrefix, Remote: w.c.Run.Repo.Remote()},
		Warn:    func(key, text string) { w.emit(journal.Event{Kind: journal.EventWarning, Key: key, Text: text}) },
		Require: w.c.Require, Exclude: w.c.Exclude, BranchPrefix: w.c.BranchPrefix, MaxOpen: w.c.MaxOpen, ByLabel: w.c.ByLabel, AllowOverlap: w.c.AllowOverlap,
	}
	w.commands = &command.Handler{
		Run: w.c.Run, Planner: w.planner, Taker: w.taker, NewRecord: w.newRecord, Explain: w.runner.Explain,
		Stop: func(key string, why tracker.Unfit) {
			w.eachRun(key, "", func(r *runHandle) { r.stop(halt.Superseded(why)) })
		},
	}
	return w, nil
}

// Kill ends all runs at once: it kills agents without a grace period and releases claims. It imports work on disk if that is
// quick; otherwise the next start imports it. All other calls end, too. Later calls return ErrEnded, except Sweep, which
// returns an interrupted Summary.
func (w *Worker) Kill() { w.kill(errKilled) }

// Requeue makes the sweep in progress or the next one work an issue again, like a forge's command with the same verb, and resets
// counts and waiting times. Retry continues from the commits so far. Fix does so with text as feedback for the agent; a forge shows
// the text on the request, or else on the issue. Fresh starts from the base. by names the person who asks.
func (w *Worker) Requeue(ctx context.Context, key, by string, verb tracker.Verb, text string) error {
	if verb != tracker.Retry && verb != tracker.Fix && verb != tracker.Fresh {
		return fmt.Errorf("%q cannot requeue an issue", verb)
	}
	c := tracker.Command{ID: rand.Text(), Key: key, Verb: verb, Text: text, By: by, At: time.Now(), Elsewhere: true}
	_, err := untilKilled(ctx, w, func(ctx context.Context) (any, error) { return nil, w.commands.Requeue(ctx, c) })
	return err
}

// untilKilled calls do for a call that works no issue. The context of do also ends with Kill; after Kill it returns
// ErrEnded. It does not wait for Observe.
func untilKilled[T any](ctx context.Context, w *Worker, do func(context.Context) (T, error)) (out T, err error) {
	if w.lifetime.Err() != nil {
		return out, ErrEnded
	}
	ctx, cancel := context.WithCancelCause(w.withWaitEvents(ctx))
	defer cancel(nil)
	defer context.AfterFunc(w.lifetime, func() { cancel(errKilled) })()
	if out, err = do(ctx); err != nil && w.lifetime.Err() != nil && !errors.Is(err, ErrEnded) {
		err = fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return out, err
}

// Running lists the issues that are being worked, sorted by key.
func (w *Worker) Running() []Running {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Running
	for _, list := range w.running { // the later ones settle an earlier run, or wait for the claim
		out = append(out, list[0].Running)
	}
	slices.SortFunc(out, func(a, b Running) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// Parked lists the agents that runs on this host found unavailable and that are not expected back yet.
func (w *Worker) Parked(ctx context.Context) ([]journal.Parked, error) {
	return untilKilled(ctx, w, func(ctx context.Context) ([]journal.Parked, error) {
		list, err := parking.Load(ctx, w.c.Run.Store, w.c.Run.Pool, w.runner.Host(), time.Now())
		return journal.ParkedAt(w.c.Run.Agents(), list), err
	})
}

// AgentsToWaitFor lists the agents for which an issue's first attempt has to wait, ordered by their return; empty: one of them is
// available.
func (w *Worker) AgentsToWaitFor(ctx context.Context) ([]journal.Parked, error) {
	parked, err := w.Parked(ctx)
	return parking.Waits(w.c.Run.Chain(1).Choices(), parked), err
}

// Park notes agents that runs of the same account elsewhere found unavailable.
func (w *Worker) Park(list []journal.Parked) { w.runner.Lot().Park(list) }

// Result is the result of one call for one issue.
type Result struct {
	Issue  tracker.Issue
	Record journal.Record // with a Skip no store may have this record
	Skip   *journal.Skip  // why the issue was not worked; nil if it was
	Err    error          // the fault that kept the issue from being worked
	Closed bool           // the issue is closed now
	// Unavailable is the reason why no other issue can be worked now either; nil if others can.
	Unavailable error
	// Deferred is the reason why the next sweep has to end the run; nil if it has ended.
	Deferred error
	// Finished lists earlier, dead runs of the issue that have ended now.
	Finished []journal.Record
}

// Work works the issue with this key, even if the issue waits for a retry or was handed to a person. When ctx ends, Work asks the
// agent to end and imports its commits. The error is a fault, such as a backlog.UnknownKeyError or ErrEnded, or the reason why a
// later call or sweep has to end the run. An issue that may not be worked now, for example because it is claimed or ctx has
// ended, is no error: the Result has a Skip. Work needs no slot and ignores SetParallel and Drain.
func (w *Worker) Work(ctx context.Context, key string) (Result, error) {
	return w.workOne(ctx, nil, key, task{keys: []string{key}})
}

// workOne works one issue, or merges its branch. The end of drained ends what precedes the run; it may be nil.
func (w *Worker) workOne(ctx, drained context.Context, key string, t task) (r Result, err error) {
	if short := w.disk.Short(); short != nil && !t.merge && w.lifetime.Err() == nil { // a sweep checks the disk in the same way
		return Result{Unavailable: short}, short
	}
	s, done := w.beginCall(ctx, drained)
	defer done()
	if r, err = w.lookUp(s, key, &t); r.Skip != nil || err != nil {
		return r, err
	}
	r = *w.work(s, t)
	return r, errors.Join(r.Err, r.Deferred)
}

// lookUp finds the issue with this key, and the task's base and tip. A skip means that the call was stopped, or that an earlier
// merge was unfinished and has ended now.
func (w *Worker) lookUp(s callContexts, key string, t *task) (left Result, err error) {
	if t.issue, err = w.readNamed(s.early, key); err == nil && t.merge {
		if left, err = w.finishMerge(s, t.issue); left.Skip != nil || err != nil {
			return left, err
		}
		t.base, t.tip, err = publish.MergeBase(s.early, w.c.Run.Repo, w.c.Run.Base, w.c.BranchPrefix+t.issue.Key)
	} else if err == nil {
		t.base, err = w.c.Run.Repo.Base(s.early, w.c.Run.Base)
		err = cmp.Or(err, base.Foreign(t.base, w.c.Run.Base, w.c.BranchPrefix))
		t.base.Commit = "" // the run asks the remote, after the claim
	}
	if err == nil {
		err = w.runner.CheckIdentity(s.early, true)
	}
	if err != nil && s.early.Err() != nil && s.hard.Err() == nil && !errors.Is(err, ErrEnded) {
		t.issue.Key = cmp.Or(t.issue.Key, key)
		return Result{Issue: t.issue, Skip: &journal.Skip{Code: journal.SkipStopped}}, nil
	}
	return left, err
}

// readNamed reads the issue with a key from the caller. After Kill it returns ErrEnded.
func (w *Worker) readNamed(ctx context.Context, key string) (tracker.Issue, error) {
	if w.lifetime.Err() != nil {
		return tracker.Issue{}, ErrEnded
	}
	return w.planner.ReadNamed(ctx, key)
}

// newBase returns the base of new runs.
func (w *Worker) newBase(ctx context.Context) (worktree.Base, error) {
	b, err := w.runner.Base(ctx)
	return b, cmp.Or(err, base.Foreign(b, w.c.Run.Base, w.c.BranchPrefix))
}

// RejectedHead returns the head commit and the URL of the branch's latest request into the base, if that was closed without a merge.
// Otherwise both are empty.
func (w *Worker) RejectedHead(ctx context.Context, branch, base string) (commit, url string, err error) {
	url, err = untilKilled(ctx, w, func(ctx context.Context) (url string, err error) {
		if r, ok := tracker.As[tracker.RejectionReader](w.c.Run.Tracker); ok {
			commit, url, err = r.RejectedHead(ctx, branch, w.c.Run.Requests.TargetBranch(base, w.c.Run.Repo.Remote()))
		}
		return url, err
	})
	return commit, url, err
}

// task is an issue to work, and how.
type task struct {
	issue      tracker.Issue
	keys       []string // the only issues that the caller wants worked; empty: all
	base       worktree.Base
	follow     *tracker.FollowUp // the request to follow up; nil: work the issue
	merge      bool              // publish the commits on the branch; see Merge
	tip        string            // for a merge: tip of the branch; empty: merge it on its own
	finishOnly bool              // end the run that met an outage at its end
}

// work works one issue.
func (w *Worker) work(s callContexts, t task) *Result {
	a, result := w.newAttempt(s, t)
	if a == nil {
		return result
	}
	return a.do()
}

// newRecord returns the record of a new run of the issue.
func (w *Worker) newRecord(issue tracker.Issue) journal.Record {
	rec := w.runner.NewRecord(journal.KindIssue, issue.Key)
	rec.Title, rec.URL, rec.Branch = issue.Title, issue.URL, w.c.BranchPrefix+issue.Key
	rec.Settings.Require = w.c.Require
	return rec
}

// withWaitEvents derives a context in which the first long wait for the remote emits an event. Without a remote nothing is
// emitted.
func (w *Worker) withWaitEvents(ctx context.Context) context.Context {
	return workspace.WithSlowWait(ctx, w.reportWaitAfter, func(what string) {
		if remote := w.c.Run.Repo.Remote(); remote != "" {
			w.emit(journal.Event{Kind: journal.EventSweep, Text: "still " + what + " " + remote})
		}
	})
}

func (w *Worker) emit(e journal.Event) { w.bus.Emit(w.runner.Stamp(e)) }
