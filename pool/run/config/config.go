// Package config has the configuration of runs: agents, sandbox, checks, limits and publishing. It fills in defaults and
// validates the values.
package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/gateway"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/proof"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/named"
)

// Config configures runs. Repo, Store and Sandboxes are required, and so is Agent unless runs are commands. The zero value of
// every other field means the default that its comment names.
type Config struct {
	Repo             *worktree.Repo // its state folder contains the folders of the runs
	Store            journal.Store
	Tracker          tracker.Tracker // nil: prompts and commands only
	Agent            agents.Agent
	Sandboxes        sandboxes.Provider
	EarlierProviders sandboxes.Registry // providers that end what earlier runs have left, by the name of the run's provider; default: Sandboxes
	Pool             string             // namespace of records in the store; default: the empty one

	Options   agents.Options
	Fallback  agents.Chain    // agents that continue, in this order, when Agent is unavailable; default: none
	Attempts  agents.Chain    // the nth replaces Agent in an issue's nth attempt, the last one in all later attempts
	Base      string          // what runs start from; default: the branch checked out
	Publish   journal.Publish // default PublishRequest if the tracker supports it, else PublishBranch
	Requests  publish.Requests
	Identity  worktree.Identity // of commits; without an author, that of a tracker.Committer
	Proof     *proof.Prover     // signs statements about issues' commits that succeed; nil: none
	Protected []string          // paths that published commits may not touch; default publish.ProtectedPaths()
	Files     []named.File      // protected, too, unless Protected is set and empty: what settings of the caller name

	Prompt        prompt.Prompt // default prompt.Default()
	Before        []string      // host commands, each for `sh -c`, run on a checkout of the base; runs get the files that they make
	Setup         []loop.Command
	After         []loop.Command // run at the end of each run, whatever its outcome; a failure is a warning
	SetupInputs   []string       // paths from the top; when a file there changes, setup fills a new home; default: build files of the top folder
	Copy          []string       // untracked files of the checkout to copy into the worktree
	Gate          []loop.Command
	GateOn        GateOn            // default GateOnCheckout
	GateFiles     journal.GateFiles // default GateFilesReport
	NoCanary      bool              // plant no tests that must fail
	Canaries      []Canary          // tests that must fail, in addition to those that ralph can write
	Retest        journal.Retesting // what the tests of a change have to show; default RetestOff
	RetestCommand string            // command that runs tests of a change, with {files} in their place; default: by language
	Signals       []string          // texts by which an agent says that it is done; default loop.DefaultSignal
	MaxIterations int               // of one run; default 10
	NoProgress    int               // consecutive iterations without a new commit that end the run; default 3; negative: no limit
	Resume        loop.Resume       // default loop.ResumeAuto
	Timers        loop.Timers       // its fields have defaults of their own
	Budget        loop.Budget       // for all attempts of an issue together, until a person takes over; in each budget 0, the default, means no limit
	PerRun        loop.Budget       // for one run, including its review
	Iteration     loop.Budget       // for one iteration
	Estimate      loop.Budget       // counts for an iteration whose usage nobody reports, if there is a limit; default ledger.DefaultEstimate
	Shares        ledger.Shares     // for one agent in one run
	Caps          ledger.Caps       // for all runs of this namespace of the store together
	Env           []string          // for every command in the sandbox
	Network       gateway.Network   // what isolated runs may reach
	Limits        sandboxes.Limits  // of one run; zero means the sandbox's defaults
	Mounts        []sandboxes.Mount // the user's, for isolating sandboxes
	HomeBytes     int64             // bytes for kept homes, which setup has filled on a base and from which sandboxes start; default 4 GiB; negative: none
	Secrets       *redact.Secrets   // values to redact; default: only those of the agent

	Hints          report.Hints // commands that reports may name
	Labels         tracker.StateLabels
	Review         Reviewer       // reviews commits that have passed the gate; default: no review
	Retry          journal.Limits // default 3 attempts, 1 min backoff, at most 1 h; a negative Backoff means none
	ClaimTTL       time.Duration  // at most [claim.MaxTTL]; default 10 min; renewed at a third
	Reconcile      time.Duration  // interval of looks at the issue during its run; default 30 s
	ProgressReport time.Duration  // interval of progress reports on the issue, and delay of the first; default 30 s
	StopGrace      time.Duration  // for agents to end after a stop; default 30 s
	ShutdownWait   time.Duration  // limit, at each stage, on waiting for a remote or tracker that hangs, once no more runs begin; default 2 min
	StopUnlabels   bool           // a stop by a person removes the pick-up label
	KeepRuns       int            // run folders kept for each issue; default 20

	// Count counts the changes of commits, for reports. Default: no counts.
	Count func(ctx context.Context, base, tip string) (journal.Changed, error)
	// Emit receives every event, from many goroutines. It must not block. Default: none.
	Emit func(journal.Event)
	// OnEnd receives the last event of each run, from many goroutines, before the run is stored as ended. The run waits for it.
	// If this process dies in between, the next one calls OnEnd again. Default: none.
	OnEnd func(journal.Event)
	// MinFree is the number of bytes that must stay free on the disk of the state folder, where it ends the run that fills the
	// disk, and on the disk of the git directory. 0 or less: no limit. A pool sets its own value.
	MinFree int64
	Log     *slog.Logger
}

// GateOn is the place where the gate has to pass before a run may succeed.
type GateOn string

const (
	// GateOnCheckout runs the gate in the worktree, and then on a clean checkout of the tip in a new sandbox.
	GateOnCheckout GateOn = "checkout"
	// GateOnWorktree runs the gate in the agent's worktree only. Reports say so. Changes to the checks are read, but not tried.
	GateOnWorktree GateOn = "worktree"
)

// Canary is a file that makes sound checks fail when it is added to a checkout.
type Canary struct {
	Path    string // slash-separated, from the root of the repository
	Content []byte
}

// WithDefaults returns the configuration with its defaults filled in.
func (c Config) WithDefaults() Config {
	c = c.unasked()
	c.HomeBytes, c.Tracker = cmp.Or(c.HomeBytes, 4<<30), tracker.Checked(tracker.WithoutWrites(c.Tracker))
	if c.Publish == "" {
		c.Publish = journal.PublishBranch
		if _, ok := tracker.As[tracker.Requester](c.Tracker); ok && c.Repo.Remote() != "" {
			c.Publish = journal.PublishRequest
		}
	}
	c.Requests = c.Requests.WithDefaults()
	if c.Protected == nil {
		c.Protected = publish.ProtectedPaths()
	}
	c.GateOn, c.GateFiles = cmp.Or(c.GateOn, GateOnCheckout), cmp.Or(c.GateFiles, journal.GateFilesReport)
	c.Retest = cmp.Or(c.Retest, journal.RetestOff)
	c.Labels = withDefaults(c.Labels)
	c.Retry.MaxAttempts = cmp.Or(c.Retry.MaxAttempts, 3)
	c.Retry.Backoff = max(0, cmp.Or(c.Retry.Backoff, time.Minute))
	c.Retry.BackoffMax, c.ClaimTTL = cmp.Or(c.Retry.BackoffMax, time.Hour), cmp.Or(c.ClaimTTL, 10*time.Minute)
	c.Reconcile = cmp.Or(c.Reconcile, 30*time.Second)
	c.ProgressReport = cmp.Or(c.ProgressReport, 30*time.Second)
	c.StopGrace, c.ShutdownWait, c.KeepRuns = cmp.Or(c.StopGrace, 30*time.Second), cmp.Or(c.ShutdownWait, 2*time.Minute), cmp.Or(c.KeepRuns, 20)
	if c.Prompt.Inline == "" && c.Prompt.Template == "" {
		c.Prompt.Template, c.Prompt.Name = prompt.Default(), "built-in prompt"
	}
	c.Estimate = c.Estimated()
	if c.Secrets == nil {
		c.Secrets = redact.New()
	}
	if c.OnEnd == nil {
		c.OnEnd = func(journal.Event) {}
	}
	if c.Emit == nil {
		c.Emit = func(journal.Event) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns all errors in the configuration, joined. It expects the defaults to be filled in.
func (c Config) Validate() error {
	errs := c.wrong()
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(slices.Contains([]journal.Publish{journal.PublishBranch, journal.PublishMerge, journal.PublishRequest, journal.PublishNone}, c.Publish),
		"Publish must be branch, merge, pr or none, not %q", c.Publish)
	need(c.GateOn == GateOnCheckout || c.GateOn == GateOnWorktree, "GateOn must be checkout or worktree, not %q", c.GateOn)
	need(slices.Contains([]journal.GateFiles{journal.GateFilesReport, journal.GateFilesRequire, journal.GateFilesBlock}, c.GateFiles),
		"GateFiles must be report, require or block, not %q", c.GateFiles)
	need(c.Network.Upstream == "" || len(slices.CompactFunc(c.Agents(), func(a, b agents.Link) bool { return a.Agent.Name() == b.Agent.Name() })) < 2,
		"Network.Upstream is the address of one agent's service, and there are several agents")
	need(c.GateOn != GateOnWorktree || c.GateFiles != journal.GateFilesRequire, "gate files require: only a gate on a checkout runs with the base's files")
	need(slices.Contains([]journal.Retesting{journal.RetestOff, journal.RetestReport, journal.RetestRequire}, c.Retest),
		"Retest must be off, report or require, not %q", c.Retest)
	if c.Publish == journal.PublishRequest {
		_, can := tracker.As[tracker.Requester](c.Tracker)
		need(can, "publish pr: tracker %s hosts no code; use branch or merge", trackerName(c.Tracker))
		need(c.Repo.Remote() != "", "publish pr needs a remote to push to")
	}
	errs = append(errs, publish.CheckPatterns(c.Protected), c.Requests.Body.Check(report.RequestKeys()), c.Review.Check(c.Agent, c.Network))
	if c.Agent != nil {
		all := loop.Config{
			Prompt: c.Prompt, Setup: c.Setup, Gate: c.Gate, Signals: c.Signals, MaxIterations: c.MaxIterations, Timers: c.Timers, Resume: c.Resume,
		}
		all.Prompt.Builtin = make(map[string]string)
		maps.Copy(all.Prompt.Builtin, c.Prompt.Builtin)
		for _, key := range prompt.Keys() {
			all.Prompt.Builtin[key] = ""
		}
		errs = append(errs, c.Agents().Check(), all.Validate())
	}
	return errors.Join(errs...)
}

// ReportsHere reports whether this clone has a copy of the issues of its own. No other clone can write its reports if ralph
// dies, so the claim of a finished issue ends before its report.
func (c Config) ReportsHere() bool {
	_, own := tracker.As[tracker.Retracter](c.Tracker)
	return own
}

func trackerName(t tracker.Tracker) string {
	if t == nil {
		return "none"
	}
	return t.Name()
}
