// Package job runs one prompt for one agent, or one command in a sandbox, without a backlog.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/claims"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Strategy is the place where a Job works.
type Strategy string

const (
	// StrategyHead works in the checkout itself. It needs a sandbox that works in place.
	StrategyHead Strategy = "head"
	// StrategyBranch works on a named branch, in a worktree that stays for the next job on that branch.
	StrategyBranch Strategy = "branch"
	// StrategyMerge works on a scratch branch and merges it back into the branch that was checked out at the start.
	StrategyMerge Strategy = "merge-to-head"
)

// Strategies lists every strategy.
func Strategies() []Strategy { return []Strategy{StrategyHead, StrategyMerge, StrategyBranch} }

// Job is one prompt for one agent, or one command in a sandbox, without a tracker. It takes the same stages as an issue.
type Job struct {
	Run  run.Config
	Name string // shown to people; part of the scratch branch's name

	Strategy       Strategy // default StrategyHead for a prompt in a sandbox in place, else StrategyMerge
	Branch         string   // for StrategyBranch
	AllowDirty     bool     // for StrategyBranch: continue in a worktree with uncommitted changes
	SignalOptional bool     // one iteration that ends well is enough
	Output         *loop.Output
	Command        *run.Command // run this instead of the agent; its commits stay on a branch

	// Kill, when closed, ends everything at once. The end of the context of Do asks the agent to end.
	Kill    <-chan struct{}
	Observe func(loop.Event)
	Stream  func(name string) (io.WriteCloser, error)
	// Recovered is called, before the job begins, for each earlier job that had died, with the record of its imported work.
	Recovered func(journal.Record)
}

// StrategyError means that strategy, sandbox and branch of a job do not fit together.
type StrategyError struct {
	Strategy Strategy
	Problem  StrategyProblem
	Sandbox  string
}

// StrategyProblem is the reason of a StrategyError.
type StrategyProblem string

const (
	StrategyUnknown   StrategyProblem = "unknown strategy"
	StrategyNeedsNone StrategyProblem = "it works in the checkout itself and needs a sandbox that does, too"
	StrategyNoBranch  StrategyProblem = "it needs the name of a branch"
	StrategyHasBranch StrategyProblem = "only strategy branch has a branch name"
	StrategyCopy      StrategyProblem = "files can only be copied into a worktree"
)

func (e *StrategyError) Error() string { return fmt.Sprintf("strategy %s: %s", e.Strategy, e.Problem) }

// Check returns all errors in the job before anything starts.
func (j Job) Check() error {
	j = j.withDefaults()
	switch {
	case j.Run.Sandboxes == nil:
		return j.Run.Missing()
	case j.Run.Agent == nil && j.Command == nil:
		return errors.New("required and not set: Agent or Command")
	}
	var errs []error
	bad := func(p StrategyProblem) {
		errs = append(errs, &StrategyError{j.Strategy, p, j.Run.Sandboxes.Name()})
	}
	if !slices.Contains(Strategies(), j.Strategy) {
		bad(StrategyUnknown)
	}
	switch caps := j.Run.Sandboxes.Capabilities(); {
	case j.Strategy == StrategyHead && caps.Files != sandboxes.InPlace:
		bad(StrategyNeedsNone)
	case j.Strategy == StrategyBranch && j.Branch == "":
		bad(StrategyNoBranch)
	case j.Strategy == StrategyBranch:
		errs = append(errs, git.CheckBranch(j.Branch))
	case j.Strategy != StrategyBranch && j.Branch != "":
		bad(StrategyHasBranch)
	case j.Strategy == StrategyHead && len(j.Run.Copy) > 0:
		bad(StrategyCopy)
	}
	if c := j.Command; c != nil && (len(c.Argv) == 0 || c.Argv[0] == "" || strings.ContainsRune(strings.Join(c.Argv, ""), 0)) {
		errs = append(errs, fmt.Errorf("the Command %q: name a program, and arguments without NUL bytes", c.Argv))
	}
	if j.Command == nil {
		c := loop.Config{
			Agent: j.Run.Agent, Options: j.Run.Options, Prompt: j.Run.Prompt, Setup: j.Run.Setup, Gate: j.Run.Gate, Signals: j.Run.Signals,
			MaxIterations: j.Run.MaxIterations, NoProgress: j.Run.NoProgress, Timers: j.Run.Timers, Output: j.Output,
		}
		c.Prompt.Builtin = map[string]string{"branch": "", "source_branch": "", "base": ""}
		errs = append(errs, c.Validate())
	}
	return errors.Join(errs...)
}

// Place returns the job's strategy with its default filled in.
func (j Job) Place() Strategy { return j.withDefaults().Strategy }

func (j Job) withDefaults() Job {
	if j.Strategy == "" {
		j.Strategy = StrategyMerge
		if j.Command == nil && j.Run.Sandboxes != nil && j.Run.Sandboxes.Capabilities().Files == sandboxes.InPlace {
			j.Strategy = StrategyHead
		}
	}
	j.Run.MaxIterations = cmp.Or(j.Run.MaxIterations, 1)
	if j.Run.NoProgress == 0 {
		j.Run.NoProgress = -1
	}
	j.Run.Publish = journal.PublishNone
	if j.Strategy == StrategyMerge && j.Command == nil {
		j.Run.Publish = journal.PublishMerge
	}
	if j.Command != nil {
		j.Run.Agent = nil
	}
	return j
}

// jobTTL is the TTL of the claim on a named branch. The claim of a dead ralph is taken over at once.
const jobTTL = 24 * time.Hour

// Do runs the job to its end. An error means that it could not be started; everything else is in the result's record. The end of
// ctx asks the agent to end, and its commits are imported.
func (j Job) Do(ctx context.Context) (run.Result, error) {
	j = j.withDefaults()
	if err := j.Check(); err != nil {
		return run.Result{}, err
	}
	runner, err := run.New(j.Run)
	if err != nil {
		return run.Result{}, err
	}
	hard, done := j.killContext(ctx)
	defer done()

	if err := j.recover(ctx, hard, runner); err != nil {
		return run.Result{}, err
	}
	if j.Command == nil { // commits, or a merge of them, would include a half-done operation of the user's
		if err := j.Run.Repo.CheckNoOperation(hard); err != nil {
			return run.Result{}, err
		}
	}
	base, err := j.Run.Repo.Base(hard, "")
	if err != nil && j.Strategy == StrategyHead {
		base, err = j.Run.Repo.Base(hard, "HEAD") // a detached head is enough
	}
	if err != nil {
		return run.Result{}, err
	}
	if j.Command == nil {
		if err := runner.CheckIdentity(hard, false); err != nil {
			return run.Result{}, err
		}
	}
	rec := j.record(runner, base)
	if err := runner.Admit(hard, &rec); err != nil {
		return run.Result{}, err
	}
	claim, err := j.claim(hard, rec)
	if err != nil {
		after, cancel := halt.ForRelease(hard)
		defer cancel()
		return run.Result{}, errors.Join(fmt.Errorf("branch %s: %w", rec.Branch, err), j.Run.Store.Forget(after, rec.ID))
	}
	return *runner.Do(hard, &run.Task{
		Record: rec, Claim: claim, Base: base, Head: j.Strategy == StrategyHead, Dirty: j.AllowDirty, Output: j.Output,
		SignalOptional: j.SignalOptional, Command: j.Command, Observe: j.Observe, Stream: j.Stream, StopContext: ctx,
	}), nil
}

// killContext derives the context of a call. It ends with Kill and not with ctx, and the work left after Kill is bounded.
func (j Job) killContext(ctx context.Context) (hard context.Context, done func()) {
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	hard, free := halt.WithKill(life, life)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-j.Kill:
			cancel(halt.Error(journal.StopShutdown, ""))
		case <-life.Done():
		}
	})
	return hard, func() { free(); cancel(nil); watching.Wait() }
}

func (j Job) claim(ctx context.Context, rec journal.Record) (*worktree.Claim, error) {
	holder := worktree.Holder{Owner: claims.Owner(rec.Host), Run: rec.ID}
	return j.Run.Repo.Claim(ctx, rec.Key, holder, jobTTL)
}

// record returns the record of the job's run.
func (j Job) record(r *run.Runner, base worktree.Base) journal.Record {
	kind, name := journal.KindPrompt, j.Name
	if j.Command != nil {
		kind, name = journal.KindCommand, "shell"
	}
	rec := r.NewRecord(kind, "")
	rec.Title, rec.Base, rec.Branch = j.title(), base.Name, base.Name
	switch j.Strategy {
	case StrategyMerge:
		rec.Key, rec.Scratch = "run-"+rec.ID, true
		if name != "" {
			rec.Key = "run-" + tracker.Key(strings.ToLower(name)) + "-" + rec.ID
		}
		rec.Branch = "ralph/" + rec.Key
	case StrategyBranch:
		rec.Key, rec.Branch, rec.Keep = tracker.Key("branch-"+j.Branch), j.Branch, true
	default:
		rec.Key = "head-" + rec.ID
	}
	rec.Dir = r.Folder(rec.Key, rec.ID)
	return rec
}

// title returns the job's name, or else the first line of its prompt or command.
func (j Job) title() string {
	const limit = 100 // bytes
	text := j.Run.Prompt.Inline + j.Run.Prompt.Template
	if j.Command != nil {
		text = strings.Join(j.Command.Argv, " ")
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return cmp.Or(j.Name, agents.Clip(line, limit))
}

// Recover ends the jobs that died, and calls recovered for each.
func Recover(ctx context.Context, c run.Config, recovered func(journal.Record)) error {
	r, err := run.New(c)
	if err != nil {
		return err
	}
	hard, free := halt.WithKill(ctx, ctx)
	defer free()
	return Job{Run: c, Recovered: recovered}.recover(ctx, hard, r)
}

// recover ends the jobs that died. Jobs that cannot be ended now, and those left when soft ends, wait for the next call.
func (j Job) recover(soft, ctx context.Context, r *run.Runner) error {
	log := cmp.Or(j.Run.Log, slog.New(slog.DiscardHandler))
	after, cancel := halt.ForRelease(ctx)
	defer cancel()
	for _, kind := range []journal.Kind{journal.KindPrompt, journal.KindCommand} {
		open, err := j.Run.Store.Find(ctx, journal.Query{Pool: j.Run.Pool, Kind: kind, Open: true})
		if err != nil {
			return err
		}
		for _, rec := range open {
			if soft.Err() != nil {
				return nil
			}
			if !r.Dead(rec) {
				continue
			}
			claim, err := j.claim(ctx, rec)
			if errors.Is(err, worktree.ErrTaken) {
				continue // another ralph recovers it
			}
			if err != nil {
				log.Warn("a run that died is not recovered yet", "run", rec.ID, "error", err)
				continue
			}
			now, err := j.Run.Store.Find(ctx, journal.Query{Pool: j.Run.Pool, Run: rec.ID})
			if err == nil && (len(now) == 0 || !now[0].Ended.IsZero()) { // another process was faster
				if err := claim.Release(after); err != nil {
					return err
				}
				continue
			}
			if err = errors.Join(err, r.Spaces().End(ctx, rec.ID)); err != nil {
				log.Warn("a run that died is not recovered yet",
					"run", rec.ID, "error", errors.Join(err, claim.Reserve(after, rec.ID, jobTTL)))
				continue
			}
			res := r.Do(ctx, &run.Task{Record: rec, Resume: true, Claim: claim, StopContext: soft})
			if j.Recovered != nil {
				j.Recovered(res.Record)
			}
		}
	}
	return nil
}
