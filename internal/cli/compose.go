package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/session"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/commits"
)

// This file is the one place where the parts of ralph are put together.

// parts is what a command that works on a repository needs. It belongs to one command; close ends it.
type parts struct {
	config.Config
	loaded     *config.Loaded
	top, state string
	repo       *worktree.Repo
	journal    *sqlite.Store
	tracker    tracker.Tracker
	log        *slog.Logger
	secrets    *redact.Secrets // of this host: what is obtained on the way is added
	passedOver string          // the forge that the tracker "auto" could have taken, too; empty: there is none
	taken      string          // the tracker that it took instead
	looks      bool            // nothing is run in the sandbox
	clock      func() time.Time
}

// open loads the configuration and opens the repository, its journal and its backlog.
func (a *app) open(cmd *cobra.Command) (*parts, error) {
	p, err := a.openRepo(cmd)
	if err != nil {
		return nil, err
	}
	if err := p.useRemote(cmd.Context()); err != nil {
		return nil, errors.Join(err, p.close())
	}
	if p.tracker, err = a.tracker(cmd.Context(), p); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, a.authorize(cmd.Context(), p)
}

// openRepo loads the configuration and opens the repository and its journal. Claims are this machine's own.
func (a *app) openRepo(cmd *cobra.Command) (*parts, error) {
	if err := a.checkRepo(); err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	place, err := worktree.Locate(ctx, a.dir())
	if err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	top := place.Top
	loaded, err := a.load(cmd, top)
	if err != nil {
		return nil, err
	}
	state, err := a.stateDir(loaded.Config)
	if err != nil {
		return nil, err
	}
	p := &parts{Config: loaded.Config, loaded: loaded, top: top, secrets: redact.New(), clock: a.clock}
	if p.state, err = worktree.StateDir(ctx, state, place); err != nil {
		return nil, err
	}
	p.log = slog.New(zerolog.NewSlogHandler(a.logger(loaded.Config, p.secrets.Log(a.ui.err))))
	if p.repo, err = worktree.Open(ctx, top, p.repository()); err != nil {
		return nil, err
	}
	if err := a.dotEnv(ctx, top, p.repo, p.Config); err != nil {
		return nil, err
	}
	if p.journal, err = sqlite.Open(ctx, filepath.Join(p.state, "state.db"), p.log); err != nil {
		return nil, err
	}
	return p, nil
}

// hostDir is shared by all clones of this user.
func (p *parts) hostDir() string { return filepath.Join(filepath.Dir(p.state), "left") }

// repository is how the repository is opened for this machine alone.
func (p *parts) repository() worktree.Options {
	return worktree.Options{StateDir: p.state, Private: []string{dotEnvFile}, Layers: layerBytes(p.Config), Now: p.clock, Log: p.log}
}

// useRemote opens the repository again with the remote that holds claims, where there is one.
func (p *parts) useRemote(ctx context.Context) error {
	options := p.repository()
	options.HostDir, options.Remote = p.hostDir(), p.Remote
	switch p.Remote {
	case "none":
		return nil
	case "auto":
		options.Remote = "origin"
		has, err := p.repo.Git().HasRemote(ctx, options.Remote)
		if err != nil || !has {
			return err
		}
	}
	repo, err := worktree.Open(ctx, p.top, options)
	if err != nil {
		return err
	}
	p.repo = repo
	return nil
}

// wrong is the error of a setting that only the machine can tell to be wrong. It says where the value comes from.
func (p *parts) wrong(key string, err error) error {
	return &exitError{status: exitUsage, err: fmt.Errorf("%s: %w", p.loaded.Origin(key).Name(key), err)}
}

// base is the branch, tag or commit that runs begin at.
func (p *parts) base(ctx context.Context) (worktree.Base, error) {
	base, err := p.repo.Base(ctx, p.Base)
	switch {
	case err == nil:
		return base, nil
	case p.Base == "":
		return base, &exitError{status: exitUsage, err: err}
	}
	return base, p.wrong("base", err)
}

// startable refuses a repository without a commit, which a job could not start from.
func (p *parts) startable(ctx context.Context) error {
	_, err := p.repo.Base(ctx, "")
	if err == nil {
		return nil
	}
	if _, herr := p.repo.Base(ctx, "HEAD"); herr == nil { // a detached head will do
		return nil
	}
	return &exitError{status: exitUsage, err: err}
}

func (p *parts) close() error {
	if p.journal == nil {
		return nil
	}
	return p.journal.Close()
}

// poolConfig is the pool that the configuration describes.
func (a *app) poolConfig(ctx context.Context, p *parts) (pool.Config, error) {
	provider, err := a.sandbox(ctx, p)
	if err != nil {
		return pool.Config{}, err
	}
	all, env, err := a.chain(p.Config, provider)
	if err != nil {
		return pool.Config{}, err
	}
	reviewer, err := a.reviewer(p.Config, provider)
	if err != nil {
		return pool.Config{}, err
	}
	network, err := a.network(p.Config)
	if err != nil {
		return pool.Config{}, err
	}
	mounts, err := a.mounts(p)
	if err != nil {
		return pool.Config{}, err
	}
	prompt, err := p.prompt(ctx)
	if err != nil {
		return pool.Config{}, err
	}
	requests, err := p.requests(ctx)
	if err != nil {
		return pool.Config{}, err
	}
	p.secrets.Add(a.secrets(env, network.User)...)
	own, err := p.canaries()
	if err != nil {
		return pool.Config{}, err
	}
	prover, err := a.prover(ctx, p, provider, mounts)
	if err != nil {
		return pool.Config{}, err
	}
	byLabel, _ := schedule.ParseLimits(p.ParallelByLabel)
	return pool.Config{
		Run: run.Config{
			Repo: p.repo, Tracker: p.tracker, Store: p.journal, Agent: all.Agent, Sandboxes: provider, StateDir: p.state,
			Options: all.Options, Next: all.next, Attempts: all.attempts, Base: p.Base, Publish: publishMode(p.Publish), Protected: p.ProtectedPaths, Identity: p.identity(), Requests: requests,
			Proof:  prover,
			Prompt: prompt, Before: p.Before, Setup: lines(p.Setup, p.SetupTimeout), After: lines(p.After, p.SetupTimeout), Copy: p.Copy,
			Gate: lines(p.Gate, p.GateTimeout), GateOn: run.GateOn(p.GateOn), GateFiles: journal.GateFiles(p.GateFiles),
			NoCanary: !p.GateCanary, Canaries: own, Proving: journal.Proving(p.Proof), Prove: p.ProofCommand, Review: reviewer, Signals: p.CompletionSignal,
			MaxIterations: p.MaxIterations, NoProgress: p.NoProgress, Resume: session.Policy(p.Resume), Timers: timers(p.Config),
			Budget: loop.Budget{Tokens: p.BudgetTokens, CostUSD: p.BudgetUSD}, Caps: caps(p.Config),
			Iteration: loop.Budget{Tokens: p.BudgetTokensIteration, CostUSD: p.BudgetUSDIteration}, Shares: all.shares, Env: env, Network: network, Mounts: mounts,
			Limits: limits(p.Config), Homes: layerBytes(p.Config), SetupInputs: p.SetupInputs, Secrets: p.secrets, Count: p.count,
			Retry: journal.Limits{MaxAttempts: p.MaxAttempts, Backoff: zeroIsNone(p.RetryBackoff), BackoffMax: p.RetryBackoffMax},
			Hints: hints(), Labels: p.labels(), ClaimTTL: p.ClaimTTL, StopGrace: p.StopGrace, KeepRuns: p.KeepRuns, Log: p.log,
		},
		Require: p.Labels, Exclude: p.ExcludeLabels, Parallel: p.Parallel, Limit: p.Limit, BranchPrefix: p.BranchPrefix,
		MaxOpen: p.MaxOpenRequests, ByLabel: byLabel, AllowOverlap: p.Overlap == "allow",
		MinFree: minFree(p.Config),
	}, nil
}

// caps are what all runs may spend together.
func caps(c config.Config) ledger.Caps {
	return ledger.Caps{
		Day:   loop.Budget{Tokens: c.BudgetTokensDay, CostUSD: c.BudgetUSDDay},
		Month: loop.Budget{Tokens: c.BudgetTokensMonth, CostUSD: c.BudgetUSDMonth},
	}
}

// labels are those that show an issue's state.
func (p *parts) labels() run.Labels {
	return run.Labels{
		NeedsHuman: p.NeedsHumanLabel, NeedsInfo: p.NeedsInfoLabel, InReview: p.ReviewLabel, Claimed: p.ClaimedLabel, Failed: p.FailedLabel,
	}
}

// count counts what commits change.
func (p *parts) count(ctx context.Context, base, tip string) (journal.Changed, error) {
	r, err := commits.Open(p.top)
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

// secrets are the values of the environment whose names say that they are none of anybody's business, and the logins of
// all agents that the user has: whichever works may find those of the others.
func (a *app) secrets(passed []string, user agents.User) []string {
	var values []string
	for _, kv := range append(slices.Clone(a.host.Env), passed...) {
		name, value, _ := strings.Cut(kv, "=")
		name = strings.ToUpper(name)
		for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "CREDENTIAL", "PRIVATE_KEY"} {
			if strings.Contains(name, word) {
				values = append(values, value)
			}
		}
	}
	return append(values, agents.Secrets(user, a.agents().All()...)...)
}

// zeroIsNone says a zero of the configuration, where it means none, in the words of the library, where it means the
// default.
func zeroIsNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// layerBytes is the most that warm homes may take, and as much again checkouts of the base, in the words of the library.
func layerBytes(c config.Config) int64 {
	if c.LayerMaxMB == 0 {
		return -1
	}
	return int64(min(c.LayerMaxMB, 1<<40)) << 20
}

// minFree is the floor of free disk space in bytes, in the words of the library.
func minFree(c config.Config) int64 {
	if c.MinFreeMB == 0 {
		return -1
	}
	return int64(min(c.MinFreeMB, 1<<40)) << 20
}

// passed resolves agent-env: a bare NAME passes the host's variable on.
func (a *app) passed(list []string) ([]string, error) {
	var env []string
	for _, item := range list {
		if !strings.Contains(item, "=") {
			value := a.host.getenv(item)
			if value == "" {
				return nil, usagef("agent-env: %s is not set on this host; set it, or take it off the list", item)
			}
			item += "=" + value
		}
		env = append(env, item)
	}
	return env, nil
}

// assumeNone chooses a sandbox for a command that only looks.
func (p *parts) assumeNone() { p.Sandbox, p.looks = "none", true }

func timers(c config.Config) loop.Timers {
	return loop.Timers{
		Idle: c.IdleTimeout, Grace: c.CompletionTimeout, GraceCap: max(c.CompletionCap, c.CompletionTimeout),
		Iteration: c.IterationTimeout, Run: c.RunTimeout, Interrupt: c.StopGrace,
	}
}

func lines(list []string, timeout time.Duration) []loop.Command {
	var out []loop.Command
	for _, line := range list {
		out = append(out, loop.Command{Line: line, Timeout: timeout})
	}
	return out
}

// logger writes for operators.
func (a *app) logger(c config.Config, to io.Writer) zerolog.Logger {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		level = zerolog.WarnLevel
	}
	if c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(a.host.Stderr) {
		to = zerolog.ConsoleWriter{Out: to, NoColor: !a.ui.color, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(to).Level(level)
}

// top is the top of the checkout the command works on.
func (a *app) top(ctx context.Context) (string, error) {
	place, err := worktree.Locate(ctx, a.dir())
	if err != nil {
		err = &exitError{status: exitUsage, err: err}
	}
	return place.Top, err
}

// choices are the names that the registries know, by configuration key.
func (a *app) choices() map[string][]string {
	if a.choose != nil {
		return a.choose
	}
	var efforts, modes []string
	for _, agent := range a.agents().All() {
		d := agent.Describe()
		efforts, modes = merged(efforts, d.Efforts), merged(modes, d.Modes)
	}
	a.choose = map[string][]string{
		"tracker": append([]string{"auto"}, a.trackers.Names()...),
		"sandbox": append([]string{"auto"}, sandboxNames()...),
		"agent":   a.agents().Names(), "effort": efforts, "permission-mode": modes,
	}
	return a.choose
}

// isolates reports whether the sandbox of that name protects the host.
func (a *app) isolates(sandbox string) bool { return sandbox != "none" }

// defaultPrompt is the built-in prompt template.
func defaultPrompt() string { return loop.DefaultTemplate }
