// Package config says how runs are done: by whom, on what, within which limits, and with which checks. It has the defaults, and
// refuses what makes no sense.
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
	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/decide"
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
)

// Config is how runs are done. Repo, Store and Sandboxes are required, and Agent for all but commands; the
// zero value of every other field means the default its comment names.
type Config struct {
	Repo      *worktree.Repo // its state folder has those of the runs
	Store     journal.Store
	Tracker   tracker.Tracker // nil: prompts and commands only
	Agent     agents.Agent
	Sandboxes sandboxes.Provider
	Earlier   sandboxes.Registry // what earlier runs may have left is ended by the provider that they had; default: by Sandboxes
	Name      string             // namespace of records in the store; default: the empty one

	Options   agents.Options
	Next      agents.Chain    // go on, in this order, when Agent is unavailable; default: none does
	Attempts  agents.Chain    // the nth takes the place of Agent in an issue's nth attempt, the last in all later ones
	Base      string          // what runs start from; default: the branch checked out
	Publish   journal.Publish // default PublishRequest where the tracker can do that, else PublishBranch
	Requests  publish.Requests
	Identity  worktree.Identity // of commits; without an author, a tracker.Committer's
	Proof     *proof.Prover     // of issues' commits that succeed; nil: none are made
	Protected []string          // paths that commits which leave the repository may not touch; default publish.ProtectedPaths()

	Prompt        prompt.Prompt // default prompt.Default
	Before        []string      // host commands, run on a checkout of the base; a run gets what they made; each `sh -c`
	Setup         []loop.Command
	After         []loop.Command // at the end of each run, whatever came of it; a failure is a warning
	SetupInputs   []string       // paths from the top; when a file there changes, setup fills a new home; none: build files of the top folder
	Copy          []string       // untracked files of the checkout that go into the worktree
	Gate          []loop.Command
	GateOn        GateOn            // default GateOnCheckout
	GateFiles     journal.GateFiles // default GateFilesReport
	NoCanary      bool              // plant no tests that must fail
	Canaries      []Canary          // tests that must fail, besides those that ralph can write
	Proving       journal.Proving   // what the tests of a change have to show; default ProvingOff
	Prove         string            // command that runs tests of a change, with {files} in the place of them; default: by language
	Signals       []string          // texts with which an agent says that it is done; default loop.DefaultSignal
	MaxIterations int               // of one run; default 10
	NoProgress    int               // iterations in a row without a new commit that end the run; default 3; negative: no limit
	Resume        loop.Resume       // default loop.ResumeAuto
	Timers        loop.Timers       // its fields have defaults of their own
	Budget        loop.Budget       // for all attempts of an issue together, until a person takes over; in each budget 0 is no limit, the default
	PerRun        loop.Budget       // for one run, its review included
	Iteration     loop.Budget       // for one iteration
	Estimate      loop.Budget       // counts for an iteration whose usage nobody reports, if there is a limit; default ledger.DefaultEstimate
	Shares        ledger.Shares     // for one agent in one run
	Caps          ledger.Caps       // for all runs of this namespace of the store together
	Env           []string          // for everything that runs in the sandbox
	Network       gateway.Network   // what isolated runs may reach
	Limits        sandboxes.Limits  // of one run; zero means the sandbox's defaults
	Mounts        []sandboxes.Mount // the user's, for isolating sandboxes
	Homes         int64             // bytes for homes that setup has filled on a base, which make sandboxes start warm; default 4 GiB; negative: none
	Secrets       *redact.Secrets   // values that are redacted; default: none but the agent's own

	Hints          report.Hints // commands that reports may name
	Labels         Labels
	Review         Reviewer       // of what has passed the gate; default: nobody
	Retry          journal.Limits // default 3 attempts, 1 min backoff, at most 1 h; a negative Backoff means none
	ClaimTTL       time.Duration  // lease duration, at most [claim.MaxTTL]; default 10 min; renewed at a third
	Reconcile      time.Duration  // between looks at the issue while its run is on; default 30 s
	ProgressReport time.Duration  // a run that lasts longer is reported as being worked; default 30 s
	StopGrace      time.Duration  // for agents to end after a stop; default 30 s
	LastWait       time.Duration  // for a remote or a tracker that hangs, at each stage, once no more runs begin; default 2 min
	StopUnlabels   bool           // an issue whose run a person stops loses its pick-up label
	KeepRuns       int            // run folders kept for each issue; default 20

	// Count counts what commits change, for reports. Default: none are counted.
	Count func(ctx context.Context, base, tip string) (journal.Changed, error)
	// Emit gets every event, from many goroutines; it must not block. Default: none.
	Emit func(journal.Event)
	// Ending gets the last event of each run before the run is stored as ended, from many goroutines. The run waits for it. If this
	// process dies in between, the next one calls it again. Default: none.
	Ending func(journal.Event)
	// MinFree are the bytes that must stay free on the disk of the state folder, where the run that fills it is ended, and on that
	// of git's folder. 0 or less: no limit. A pool sets its own.
	MinFree int64
	Log     *slog.Logger
}

// GateOn says where the gate has to pass before a run may succeed.
type GateOn string

const (
	// GateOnCheckout: in the worktree, and then on a clean checkout of the tip in a fresh sandbox.
	GateOnCheckout GateOn = "checkout"
	// GateOnWorktree: in the agent's worktree only. Reports say so. What the commits did to their checks is read, not tried.
	GateOnWorktree GateOn = "worktree"
)

// Canary is a file that makes sound checks fail when it is added to a checkout. Set two fields, and leave the others, which are ralph's
// own and may change:
//
//	Path    string // slash-separated, from the root of the repository
//	Content []byte
type Canary = ecosystem.Canary

// Labels are the labels that show an issue's state to people.
type Labels = decide.Labels

// WithDefaults fills in what has a default.
func (c Config) WithDefaults() Config {
	c = c.unasked()
	c.Homes, c.Tracker = cmp.Or(c.Homes, 4<<30), tracker.Checked(tracker.WithoutWrites(c.Tracker))
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
	c.Proving = cmp.Or(c.Proving, journal.ProvingOff)
	c.Labels = withDefaults(c.Labels)
	c.Retry.MaxAttempts = cmp.Or(c.Retry.MaxAttempts, 3)
	c.Retry.Backoff = max(0, cmp.Or(c.Retry.Backoff, time.Minute))
	c.Retry.BackoffMax, c.ClaimTTL = cmp.Or(c.Retry.BackoffMax, time.Hour), cmp.Or(c.ClaimTTL, 10*time.Minute)
	c.Reconcile = cmp.Or(c.Reconcile, 30*time.Second)
	c.ProgressReport = cmp.Or(c.ProgressReport, 30*time.Second)
	c.StopGrace, c.LastWait, c.KeepRuns = cmp.Or(c.StopGrace, 30*time.Second), cmp.Or(c.LastWait, 2*time.Minute), cmp.Or(c.KeepRuns, 20)
	if c.Prompt.Inline == "" && c.Prompt.Template == "" {
		c.Prompt.Template, c.Prompt.Name = prompt.Default, "built-in prompt"
	}
	c.Estimate = c.Estimated()
	if c.Secrets == nil {
		c.Secrets = redact.New()
	}
	if c.Ending == nil {
		c.Ending = func(journal.Event) {}
	}
	if c.Emit == nil {
		c.Emit = func(journal.Event) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports everything that is wrong, all at once. It expects the defaults to be filled in.
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
	need(slices.Contains([]journal.Proving{journal.ProvingOff, journal.ProvingReport, journal.ProvingRequire}, c.Proving),
		"Proving must be off, report or require, not %q", c.Proving)
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

func trackerName(t tracker.Tracker) string {
	if t == nil {
		return "none"
	}
	return t.Name()
}
