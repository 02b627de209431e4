package compose

import (
	"cmp"
	"context"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/commits"
)

// RunConfig returns the configuration of runs, without an agent.
func (a *App) RunConfig(ctx context.Context, p *Parts) (c run.Config, err error) {
	c = run.Config{
		Repo: p.Repo, Store: p.Journal, Limits: Limits(p.Config), HomeBytes: layerBytes(p.Config), Secrets: p.Secrets,
		Protected: p.ProtectedPaths, Files: p.Loaded.Named(), Identity: p.Identity(), StopGrace: p.StopGrace, Log: p.Log, MinFree: MinFree(p.Config),
	}
	c.EarlierProviders = a.SandboxRegistry(p)
	if c.Sandboxes, err = a.Sandbox(ctx, p); err != nil {
		return c, err
	}
	if c.Network, err = a.Network(p.Config); err != nil {
		return c, err
	}
	c.Mounts, err = a.Mounts(p)
	return c, err
}

// WithAgent adds to a run's configuration the agents, their checks and their budgets.
func (a *App) WithAgent(p *Parts, c *run.Config) error {
	all, env, err := a.chain(p.Config, c.Sandboxes)
	if err != nil {
		return err
	}
	if p.GateCanary {
		if c.Canaries, err = scaffold.Canaries(p.Repo.Dir()); err != nil {
			return err
		}
	}
	p.Secrets.Add(a.Secrets(env, c.Network.User)...)
	c.Agent, c.Options, c.Fallback, c.Attempts, c.Env, c.Shares = all.Agent, all.Options, all.next, all.attempts, env, all.shares
	c.Setup, c.After = lines(p.Setup, p.SetupTimeout, "setup-timeout"), lines(p.After, p.SetupTimeout, "setup-timeout")
	c.Gate = lines(p.Gate, p.GateTimeout, "gate-timeout")
	c.GateOn, c.GateFiles, c.NoCanary = run.GateOn(p.GateOn), journal.GateFiles(p.GateFiles), !p.GateCanary
	c.Signals, c.Resume, c.Timers = p.CompletionSignal, loop.Resume(p.Resume), timers(p.Config)
	c.Budget, c.Caps = loop.Budget{Tokens: p.BudgetTokens, CostUSD: p.BudgetUSD}, Caps(p.Config)
	c.PerRun = loop.Budget{Tokens: p.BudgetTokensRun, CostUSD: p.BudgetUSDRun}
	c.Iteration = loop.Budget{Tokens: p.BudgetTokensIteration, CostUSD: p.BudgetUSDIteration}
	c.Estimate = loop.Budget{Tokens: p.EstimateTokens, CostUSD: p.EstimateUSD}
	return nil
}

// PoolConfig returns the pool's configuration.
func (a *App) PoolConfig(ctx context.Context, p *Parts) (c pool.Config, err error) {
	r, err := a.RunConfig(ctx, p)
	if err != nil {
		return c, err
	}
	if err := a.WithAgent(p, &r); err != nil {
		return c, err
	}
	if r.Review, err = a.Reviewer(p.Config, r.Sandboxes); err != nil {
		return c, err
	}
	if r.Prompt, err = p.Prompt(ctx); err != nil {
		return c, err
	}
	if r.Requests, err = p.requests(ctx); err != nil {
		return c, err
	}
	if r.Proof, err = a.prover(p, r.Sandboxes, r.Mounts); err != nil {
		return c, err
	}
	r.Tracker, r.Labels, r.Hints, r.Count = p.Backlog, p.StateLabels(), hint.Commands(), p.count
	r.Base, r.Publish, r.ClaimTTL, r.KeepRuns = p.Base, publishMode(p.Publish), p.ClaimTTL, p.KeepRuns
	r.Before, r.Copy, r.SetupInputs, r.Retest, r.RetestCommand = p.Before, p.Copy, p.SetupInputs, journal.Retesting(p.Retest), p.RetestCommand
	r.MaxIterations, r.NoProgress = p.MaxIterations, p.NoProgress
	r.Retry = journal.Limits{MaxAttempts: p.MaxAttempts, Backoff: cmp.Or(p.RetryBackoff, -1), BackoffMax: p.RetryBackoffMax}
	return pool.Config{
		Run: r, Require: p.Labels, Exclude: p.ExcludeLabels, Parallel: p.Parallel, Limit: p.Limit, BranchPrefix: p.BranchPrefix,
		MaxOpen: p.MaxOpenRequests, ByLabel: schedule.ParseLimits(p.ParallelByLabel), AllowOverlap: p.Overlap == "allow", MinFree: MinFree(p.Config),
	}, nil
}

// Worker returns a worker for single issues.
func (a *App) Worker(ctx context.Context, p *Parts) (*pool.Worker, error) {
	c, err := a.PoolConfig(ctx, p)
	if err != nil {
		return nil, err
	}
	worker, err := pool.NewWorker(c)
	if err != nil {
		return nil, &exit.Error{Status: exit.Usage, Err: err}
	}
	return worker, nil
}

// Caps returns the budgets that all runs share.
func Caps(c config.Config) ledger.Caps {
	return ledger.Caps{
		Day:   loop.Budget{Tokens: c.BudgetTokensDay, CostUSD: c.BudgetUSDDay},
		Month: loop.Budget{Tokens: c.BudgetTokensMonth, CostUSD: c.BudgetUSDMonth},
	}
}

// StateLabels returns the labels that show an issue's state.
func (p *Parts) StateLabels() tracker.StateLabels {
	return tracker.StateLabels{
		NeedsHuman: p.NeedsHumanLabel, NeedsInfo: p.NeedsInfoLabel, InReview: p.ReviewLabel, Claimed: p.ClaimedLabel, Failed: p.FailedLabel,
	}
}

// count counts the changes between two commits. It lists at most 50 files.
func (p *Parts) count(ctx context.Context, base, tip string) (journal.Changed, error) {
	r, err := commits.Open(p.Top)
	if err != nil {
		return journal.Changed{}, err
	}
	s, err := r.Stat(ctx, base, tip)
	c := journal.Changed{Files: len(s.Files), Insertions: s.Insertions, Deletions: s.Deletions}
	for _, f := range s.Files[:min(len(s.Files), 50)] {
		c.List = append(c.List, journal.ChangedFile{Path: f.Path, Insertions: f.Insertions, Deletions: f.Deletions})
	}
	return c, err
}

// layerBytes is the limit in bytes of warm homes, and again of checkouts of the base.
func layerBytes(c config.Config) int64 { return mebibytes(c.LayerMaxMB) }

// MinFree is the minimum of free disk space in bytes.
func MinFree(c config.Config) int64 { return mebibytes(c.MinFreeMB) }

// mebibytes converts MiB to bytes. 0 becomes -1, which means "none" to the library.
func mebibytes(n int) int64 {
	if n == 0 {
		return -1
	}
	return int64(min(n, 1<<40)) << 20
}

func timers(c config.Config) loop.Timers {
	return loop.Timers{
		Idle: c.IdleTimeout, Grace: c.CompletionTimeout, GraceCap: max(c.CompletionCap, c.CompletionTimeout),
		Iteration: c.IterationTimeout, Run: c.RunTimeout, Interrupt: c.StopGrace,
	}
}

func lines(list []string, timeout time.Duration, key string) []loop.Command {
	var out []loop.Command
	for _, line := range list {
		out = append(out, loop.Command{Line: line, Timeout: timeout, Limit: key})
	}
	return out
}
