package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// This file is the one place where the parts of ralph are put together. A new agent or sandbox is one line here.

func agentRegistry() agents.Registry {
	return agents.NewRegistry(agents.Claude{}, agents.Codex{}, agents.Command{})
}

// parts is what a command that works on a repository needs. It belongs to one command; close ends it.
type parts struct {
	config.Config
	loaded     *config.Loaded
	top, state string
	repo       *worktree.Repo
	journal    *pool.Journal
	tracker    tracker.Tracker
	log        zerolog.Logger
	secrets    *pool.Secrets // of this host: what is obtained on the way is added
	passedOver string        // the forge that the tracker "auto" could have taken, too; empty: there is none
}

// open loads the configuration and opens the repository, its journal and its backlog.
func (a *app) open(cmd *cobra.Command) (*parts, error) {
	p, err := a.openRepo(cmd, "")
	if err != nil {
		return nil, err
	}
	if p.journal, err = pool.OpenJournal(cmd.Context(), filepath.Join(p.state, "state.db")); err != nil {
		return nil, err
	}
	if p.tracker, err = a.tracker(cmd.Context(), p); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, a.authorize(cmd.Context(), p)
}

// openRepo loads the configuration and opens the repository with its state in a folder below the usual one.
func (a *app) openRepo(cmd *cobra.Command, folder string) (*parts, error) {
	if err := a.checkRepo(); err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	top, id, err := worktree.Locate(ctx, a.dir())
	if err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	loaded, err := a.load(cmd, top)
	if err != nil {
		return nil, err
	}
	state, err := a.stateDir(loaded.Config)
	if err != nil {
		return nil, err
	}
	p := &parts{Config: loaded.Config, loaded: loaded, top: top, state: filepath.Join(state, id), secrets: pool.NewSecrets()}
	p.log = a.logger(loaded.Config, p.secrets.Log(a.ui.err))
	options := worktree.Options{StateDir: filepath.Join(p.state, folder), Log: p.log}
	p.repo, err = worktree.Open(ctx, top, options)
	if err != nil {
		return nil, err
	}
	if folder != "" {
		if err := p.startable(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Remote == "none" || folder != "": // jobs without a tracker are this machine's own
		return p, nil
	case p.Remote == "auto":
		options.Remote = "origin"
		has, err := p.repo.HasRemote(ctx, options.Remote)
		if err != nil || !has {
			return p, err
		}
	default:
		options.Remote = p.Remote
	}
	p.repo, err = worktree.Open(ctx, top, options)
	return p, err
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
	agent, options, env, err := a.agent(p.Config, provider)
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
	prompt, err := p.prompt()
	if err != nil {
		return pool.Config{}, err
	}
	requests, err := p.requests()
	if err != nil {
		return pool.Config{}, err
	}
	p.secrets.Add(a.secrets(env, network.User)...)
	return pool.Config{
		Repo: p.repo, Tracker: p.tracker, Journal: p.journal, Agent: agent, Sandboxes: provider, StateDir: p.state,
		Options: options, Require: p.Labels, Exclude: p.ExcludeLabels, Parallel: p.Parallel, Limit: p.Limit,
		Base: p.Base, Publish: publish(p.Publish), BranchPrefix: p.BranchPrefix, Protected: p.ProtectedPaths,
		Requests: requests,
		Prompt:   prompt, Before: p.Before, Setup: lines(p.Setup, p.SetupTimeout), Copy: p.Copy,
		Gate: lines(p.Gate, p.GateTimeout), Signals: p.CompletionSignal, MaxIterations: p.MaxIterations,
		NoProgress: p.NoProgress, Timers: timers(p.Config),
		Budget: loop.Budget{Tokens: p.BudgetTokens, CostUSD: p.BudgetUSD}, Env: env,
		Retry: pool.Retry{MaxAttempts: p.MaxAttempts, Backoff: zeroIsNone(p.RetryBackoff), BackoffMax: p.RetryBackoffMax},
		Labels: pool.Labels{
			NeedsHuman: p.NeedsHumanLabel, NeedsInfo: p.NeedsInfoLabel, InReview: p.ReviewLabel,
			Claimed: p.ClaimedLabel, Failed: p.FailedLabel,
		},
		ClaimLife: p.ClaimLife, StopGrace: p.StopGrace, KeepRuns: p.KeepRuns, MinFree: minFree(p.Config), Log: p.log,
		Secrets: p.secrets, Network: network, Mounts: mounts, Limits: limits(p.Config),
	}, nil
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
	registry := agentRegistry()
	for _, name := range registry.Names() {
		agent, _ := registry.Lookup(name) // it has just named it
		if holder, ok := agent.(agents.Holder); ok {
			values = append(values, holder.Secrets(user)...)
		}
	}
	return values
}

// zeroIsNone says a zero of the configuration, where it means none, in the words of the library, where it means the
// default.
func zeroIsNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// minFree is the floor of free disk space in bytes, in the words of the library.
func minFree(c config.Config) int64 {
	if c.MinFreeMB == 0 {
		return -1
	}
	return int64(min(c.MinFreeMB, 1<<40)) << 20
}

// agent is the agent that the configuration names, its options, and the environment for the sandbox.
func (a *app) agent(c config.Config, provider sandboxes.Provider) (agents.Agent, agents.Options, []string, error) {
	agent, err := agentRegistry().Lookup(c.Agent)
	if err != nil {
		return nil, agents.Options{}, nil, &exitError{status: exitUsage, err: err}
	}
	if err := a.checkUpstream(c, agent, provider); err != nil {
		return nil, agents.Options{}, nil, err
	}
	env, err := a.passed(c.AgentEnv)
	isolated := provider.Capabilities().Isolated()
	sandboxEnv := env
	if showsHost(provider) {
		sandboxEnv = append([]string{"PATH=" + a.sandboxPath(c)}, env...)
	}
	options := agents.Options{
		Model: c.Model, Effort: c.Effort, PermissionMode: c.PermissionMode,
		SkipPermissions: c.PermissionMode == "" && (c.SkipPermissions || isolated),
		Args:            c.AgentArgs, Command: c.AgentCommand, Env: env,
	}
	if provider.Name() == "sbx" {
		options.Env = append(agents.Conceal(env), sbxPlaceholders(c.Agent)...)
	}
	return agent, options, sandboxEnv, err
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
func (p *parts) assumeNone() { p.Sandbox = "none" }

// prompt is the template of prompt-file, of .ralph/prompt.md, or the built-in one.
func (p *parts) prompt() (loop.Prompt, error) {
	path := p.PromptFile
	if path == "" {
		path = filepath.Join(p.top, ".ralph", "prompt.md")
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return loop.Prompt{}, nil
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return loop.Prompt{}, p.wrong("prompt-file", err)
	}
	return loop.Prompt{Template: string(text), Name: path}, nil
}

// publish says auto in the words of the library, where an empty value lets the tracker decide.
func publish(s string) pool.Publish {
	if s == "auto" {
		return ""
	}
	return pool.Publish(s)
}

func (p *parts) requests() (pool.Requests, error) {
	r := pool.Requests{
		Target: p.RequestTarget, Labels: p.RequestLabels, Reviewers: p.Reviewers, Assignees: p.RequestAssignees,
		MaxRounds: p.MaxRounds,
	}
	if r.MaxRounds == 0 {
		r.MaxRounds = -1
	}
	if p.RequestTemplate == "" {
		return r, nil
	}
	text, err := os.ReadFile(p.RequestTemplate)
	if err != nil {
		return r, p.wrong("request-template", err)
	}
	r.Body = loop.Prompt{Template: string(text), Name: p.RequestTemplate}
	return r, nil
}

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
	if c.LogFormat == "json" || c.LogFormat == "auto" && !isTerminal(a.host.Stderr) {
		return zerolog.New(to).Level(level).With().Timestamp().Logger()
	}
	text := zerolog.ConsoleWriter{Out: to, NoColor: !a.ui.color, TimeFormat: time.TimeOnly}
	return zerolog.New(text).Level(level).With().Timestamp().Logger()
}

// top is the top of the checkout the command works on.
func (a *app) top(ctx context.Context) (string, error) {
	top, _, err := worktree.Locate(ctx, a.dir())
	if err != nil {
		err = &exitError{status: exitUsage, err: err}
	}
	return top, err
}

// choices are the names that the registries know, by configuration key.
func (a *app) choices() map[string][]string {
	return map[string][]string{
		"tracker": {"auto", "local", "github", "gitlab"},
		"agent":   agentRegistry().Names(),
		"sandbox": append([]string{"auto"}, sandboxNames()...),
	}
}

// isolates reports whether the sandbox of that name protects the host.
func (a *app) isolates(sandbox string) bool { return sandbox != "none" }

// defaultPrompt is the built-in prompt template.
func defaultPrompt() string { return loop.DefaultTemplate }

// known resolves what a person typed for an issue; the local tracker's files may be named with their ending.
func known(key string) string { return strings.TrimSuffix(filepath.Base(key), ".md") }

// key is the key of the issue that a person typed, where there is such an issue.
func (p *parts) key(ctx context.Context, typed string) string {
	if n, ok := tracker.As[tracker.Namer](p.tracker); ok {
		if key, ok := n.KeyOf(ctx, typed); ok {
			return key
		}
	}
	return known(typed)
}

// names gives what people call an issue; typed, it finds it. The backlog is looked at once.
func (p *parts) names(ctx context.Context) func(key string) string {
	known := sync.OnceValue(func() map[string]string {
		n, ok := tracker.As[tracker.Namer](p.tracker)
		if !ok {
			return nil
		}
		return n.Names(context.WithoutCancel(ctx))
	})
	return func(key string) string { return cmp.Or(known()[key], key) }
}

var errNoRuns = errors.New("no runs on record")

// runsOf are the runs of an issue, oldest first; never none.
func (p *parts) runsOf(ctx context.Context, key string) ([]pool.Record, error) {
	runs, err := p.journal.Runs(ctx, p.key(ctx, key))
	if err == nil && len(runs) == 0 { // the issue may be gone
		runs, err = p.journal.Runs(ctx, tracker.Key(key))
	}
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		if _, err := p.tracker.Get(ctx, p.key(ctx, key)); errors.Is(err, tracker.ErrNotFound) {
			return nil, usagef("no issue %q in the backlog, and no runs of it on record; `ralph work --dry-run` lists the backlog", key)
		}
		return nil, fmt.Errorf("%s: %w", key, errNoRuns)
	}
	return runs, nil
}
